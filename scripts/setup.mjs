// Runs before `npm start` and `npm test` and installs packages that are missing or differ from the lockfile. With `--omit=dev`, only
// production packages. It runs on the machine's own Node (20 or newer), so it is plain JavaScript.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const omitsDev = process.argv.includes('--omit=dev')

/** Time limit for a response of the registry, in milliseconds. */
const PATIENCE = 8_000

if (missingPackages().length > 0) {
  install()
  const [left] = missingPackages()
  if (left !== undefined)
    fail(`npm did not install the package ${left}. Check whether \`omit\` in .npmrc excludes it.`)
}
// Check that the installed Node runs: small Debian images lack a library that Node 26 needs.
const ownNode = path.join(root, 'node_modules', '.bin', 'node')
if (existsSync(ownNode) && spawnSync(ownNode, ['--version'], { stdio: 'ignore' }).status !== 0)
  fail('The Node that npm installed does not run on this machine. On Debian: apt-get install libatomic1')

/**
 * Packages of the lockfile that are missing or have a different version. npm's list of installed packages is not sufficient: after an
 * interrupted copy or removal it lists packages that do not exist.
 */
function missingPackages() {
  const installed = packagesOf('node_modules/.package-lock.json')
  const isWanted = ([name, { dev, optional, ...entry }]) => {
    // The project itself and its workspaces are in the clone; npm adds links to those.
    if (!name.includes('node_modules/') || (dev && omitsDev)) return false
    return !optional || name in installed || isNodeForHere(name, entry)
  }
  const isInPlace = ([name, { version }]) =>
    installed[name]?.version === version && existsSync(path.join(root, name, 'package.json'))
  return Object.entries(packagesOf('package-lock.json'))
    .filter((entry) => isWanted(entry) && !isInPlace(entry))
    .map(([name]) => name.replace('node_modules/', ''))
}

/** Reads a lockfile. A missing or invalid file lists no packages. */
function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(path.join(root, file), 'utf8')).packages ?? {}
  } catch {
    return {}
  }
}

/** Whether an optional package is required here: the Node for this platform, if the machine's own is too old. */
function isNodeForHere(name, { os, cpu }) {
  const isOld = Number.parseInt(process.versions.node, 10) < 24
  const fits = [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch)
  return isOld && fits && name.startsWith('node_modules/node-')
}

/**
 * Uses `npm ci` only for the first installation, because it removes node_modules before it downloads anything. `npm install` also takes the
 * versions of the lockfile, and restores replaced packages if it fails. Installed development packages are kept.
 */
function install() {
  const withDev =
    !omitsDev || Object.values(packagesOf('node_modules/.package-lock.json')).some(({ dev }) => dev)
  const args = [
    ...(existsSync(path.join(root, 'node_modules')) ? ['install', '--no-save'] : ['ci']),
    // Explicit, because NODE_ENV=production would exclude them.
    withDev ? '--include=dev' : '--omit=dev',
    '--ignore-scripts',
    '--loglevel=error',
  ]
  const size = withDev ? '500 MB with Node, PostgreSQL and the test tools' : '300 MB with Node and PostgreSQL'
  console.error(`Installing packages (once; about ${size}) …`)
  const silence = registrySilence()
  if (silence === undefined) {
    if (
      npm([...args, '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000'], 'inherit').status !== 0
    )
      fail('The packages could not be installed; see the errors of npm above.')
  } else if (npm([...args, '--offline'], 'ignore').status !== 0) {
    const url = npm(['config', 'get', 'registry']).stdout.trim()
    const registry = URL.canParse(url) ? new URL(url).host : url
    fail(
      `The package registry ${registry} cannot be reached (${silence}): check the network and the proxy, or set another registry with ` +
        '`npm config set registry URL`.',
    )
  }
}

/** The reason why the registry does not respond, or undefined if it responds, even with an error. */
function registrySilence() {
  const { status, stderr, error } = npm(['ping', '--fetch-retries=0', `--fetch-timeout=${PATIENCE}`])
  const [, code = ''] = /code (\w+)/.exec(stderr) ?? []
  if (error || code === 'FETCH_ERROR') return `no response within ${PATIENCE / 1_000} s`
  return status === 0 || /^(E\d+|)$/.test(code) ? undefined : code
}

/** Runs npm: the one that runs this script, or the machine's. */
function npm(args, output = 'pipe') {
  const own = process.env.npm_execpath ?? ''
  const [command, first] = own.endsWith('npm-cli.js') ? [process.execPath, [own]] : ['npm', []]
  return spawnSync(command, [...first, ...args], {
    cwd: root,
    stdio: ['ignore', output === 'pipe' ? 'pipe' : 'ignore', output],
    encoding: 'utf8',
    // Queries have a timeout; an installation may take as long as the network needs.
    ...(output === 'pipe' && { timeout: PATIENCE + 2_000 }),
  })
}

function fail(sentence) {
  console.error(sentence)
  process.exit(1)
}
