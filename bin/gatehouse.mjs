#!/usr/bin/env node
// The program's door: checks the runtime before anything that needs it is loaded.
import module from 'node:module'

// Node opens its inspector, and with it everything, to whoever may send this signal.
process.on('SIGUSR1', () => {})

if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(
    `Gatehouse needs Node 24 or newer and this is ${process.versions.node}. The project brings its own: start it with ` +
      '`npm start`, or `npx gatehouse COMMAND` from its folder.',
  )
  process.exit(1)
}
module.enableCompileCache?.()
const { main } = await import('../src/main.ts')
await main(process.argv)
