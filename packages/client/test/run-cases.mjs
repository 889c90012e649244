// For runtimes with a command line: `node run-cases.mjs CONTEXT` prints the results as JSON. It ends by itself when the client has left nothing open.
import { runCases } from './cases.mjs'

console.log(JSON.stringify(await runCases(JSON.parse(process.argv[2]))))
