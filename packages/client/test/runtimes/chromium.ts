import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { launchBrowser } from '../../../../test/browser/chromium.ts'
import { PATIENCE, type RunCases } from './case-result.ts'

const CLIENT = path.join(import.meta.dirname, '../..')

/** A page for the cases, on an origin of its own. */
export type CasePage = { readonly origin: string; readonly run: RunCases; close(): void }

export async function openCasePage(): Promise<CasePage> {
  const server = createServer(async ({ url = '/' }, response) => {
    if (url === '/') return void response.setHeader('content-type', 'text/html').end('<title>cases</title>')
    if (!/^\/(dist|test)(\/[\w-]+)*\/[\w-]+\.m?js$/.test(url)) return void response.writeHead(404).end()
    const text = await readFile(path.join(CLIENT, url), 'utf8')
    response.setHeader('content-type', 'text/javascript').end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  const { port } = server.address() as AddressInfo // the address of a TCP server
  const origin = `http://localhost:${port}`
  return {
    origin,
    async run(context) {
      const browser = await launchBrowser()
      try {
        const page = await browser.newPage()
        page.setDefaultTimeout(PATIENCE)
        await page.goto(origin)
        // The text of a function would be compiled by what runs this script.
        return await page.evaluate(
          `import('/test/cases.mjs').then(({ runCases }) => runCases(${JSON.stringify(context)}))`,
        )
      } finally {
        await browser.close()
      }
    },
    close: () => void server.close(),
  }
}
