// For workers: answers a context with the results.
import { runCases } from './cases.mjs'

// biome-ignore lint/style/noDefaultExport: the form of a worker
export default {
  fetch: async (request) => Response.json(await runCases(await request.json())),
}
