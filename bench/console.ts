/**
 * What the screens of the console cost with a million users and a table of ten million rows: requests, kilobytes and the slowest call of a
 * first view, and the time from an act to what it paints on a processor that is four times slower. `node bench/console.ts [--users N]
 * [--rows N]` prints the tables of docs/console.md. It fills for five minutes, on a server without a disk, and needs 8 GB in /dev/shm.
 */
import { parseArgs } from 'node:util'
import { launchBrowser } from '#test/browser/chromium.ts'
import { paints } from './console/acts.ts'
import { fillConsole } from './console/fill.ts'
import { counts, enter, SCREENS, visits } from './console/screens.ts'
import { withServer } from './fixture.ts'
import { startServerWithoutDisk } from './server.ts'
import { startService } from './service.ts'

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    rows: { type: 'string', default: '10000000' },
  },
})

const print = (...cells: readonly unknown[]) => console.log(`| ${cells.join(' | ')} |`)

await withServer(async (server, signal) => {
  await using cleanups = new AsyncDisposableStack()
  const service = await startService(server, () => ({ SERVICE_CONSOLE__ENABLED: 'true' }))
  cleanups.defer(service.stop)
  await fillConsole({ server, service }, { users: Number(values.users), rows: Number(values.rows) })
  const browser = await launchBrowser()
  cleanups.defer(() => browser.close())
  const at = `${service.url.replace('127.0.0.1', 'localhost')}/console`
  const storageState = await enter(browser, at)
  const open = () => browser.newContext({ storageState })

  print('Screen', 'Requests', 'kB', 'Slowest call', 'ms', 'Exact counts')
  print('---', '--:', '--:', '---', '--:', '---')
  for (const [name, path] of Object.entries(SCREENS)) {
    signal.throwIfAborted()
    const { requests, bytes, slowest, ms, exact } = await visits(open, at + path)
    print(name, requests, (bytes / 1000).toFixed(0), `\`${slowest}\``, ms.toFixed(0), exact.join(', '))
  }

  console.log()
  print('Counted exactly, when one asks', 'ms')
  print('---', '--:')
  for (const [name, ms] of await counts(open, at)) print(name, ms.toFixed(0))

  console.log()
  print('Act', 'ms to the next paint')
  print('---', '--:')
  for (const { name, ms } of await paints(open, at)) print(name, ms === 0 ? '< 16' : ms)
}, startServerWithoutDisk)
