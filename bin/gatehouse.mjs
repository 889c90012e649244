#!/usr/bin/env node
// The program's door: finds a Node that is new enough before anything that needs it is loaded.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

// Node opens its inspector, and with it everything, to whoever may send this signal.
process.on('SIGUSR1', () => {})

/**
 * What is read at the start of a process only. With one arena for all threads, glibc's malloc keeps less of what is freed; other systems ignore
 * it. V8 keeps its young generation at the size that a load once needed, by default twice this one.
 */
const ENVIRONMENT = {
  MALLOC_ARENA_MAX: '1',
  ...process.env,
  // The operator's options come last and win.
  NODE_OPTIONS: `--max-semi-space-size=16 ${process.env.NODE_OPTIONS ?? ''}`.trim(),
}
const startsAgain =
  process.platform === 'linux' && process.argv.includes('serve') && process.env.MALLOC_ARENA_MAX === undefined

const isOld = Number.parseInt(process.versions.node, 10) < 24
const own = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url))

if (import.meta.url.includes('/node_modules/')) {
  console.error(
    'Gatehouse does not run as an installed package yet, since Node takes no TypeScript from node_modules: clone its repository and run ' +
      '`npm start` there; `npm link` there makes `gatehouse` a command of the machine.',
  )
  process.exit(1)
} else if (!isOld && startsAgain && process.execve !== undefined) {
  // The same process: its id, its parent and what it has open stay.
  process.execve(
    process.execPath,
    [process.argv0, ...process.execArgv, ...process.argv.slice(1)],
    ENVIRONMENT,
  )
} else if (!isOld) {
  module.enableCompileCache?.()
  const { main } = await import('../src/main.ts')
  await main(process.argv)
} else if (existsSync(own)) {
  runOn(own)
} else {
  console.error(
    `Gatehouse needs Node 24 or newer and this is ${process.versions.node}. The project brings its own: \`npm ci\` in ` +
      `${fileURLToPath(new URL('..', import.meta.url))} installs it.`,
  )
  process.exit(1)
}

/** `npx` and links from elsewhere start the machine's Node. The one that npm installed here does the work then. */
function runOn(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: ENVIRONMENT,
  })
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  // Ctrl-C at a terminal reaches both.
  process.on('SIGINT', () => {})
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    process.removeAllListeners()
    process.kill(process.pid, signal)
  })
}
