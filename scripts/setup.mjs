// Runs before `npm start` and `npm test`, on whatever Node the machine has (20 or newer): installs what is
// missing or older than the lockfile, and says so. Plain JavaScript on purpose.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

/** npm writes what it installed to node_modules/.package-lock.json; the same packages mean nothing to do. */
function isInstalled() {
  const installed = path.join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(installed)) return false
  const have = JSON.parse(readFileSync(installed, 'utf8')).packages
  const want = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).packages
  return Object.entries(want).every(
    ([name, entry]) => name === '' || entry.optional || have[name]?.version === entry.version,
  )
}

if (!isInstalled()) {
  console.error('Installing packages (once; about 500 MB with Node, PostgreSQL and the test tools) …')
  const npm = process.env.npm_execpath
  const [command, args] = npm ? [process.execPath, [npm]] : ['npm', []]
  const result = spawnSync(command, [...args, 'ci', '--ignore-scripts', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (result.status !== 0) {
    console.error('npm ci failed. Check the network and the registry, then try again.')
    process.exit(1)
  }
}

// What npm put there has to run here: small Debian images lack a library that Node 26 is linked against.
const own = path.join(root, 'node_modules', '.bin', 'node')
if (existsSync(own) && spawnSync(own, ['--version'], { stdio: 'ignore' }).status !== 0) {
  console.error(
    'The Node that npm installed does not start on this machine. On Debian: apt-get install libatomic1',
  )
  process.exit(1)
}
