// Runs before `npm start` and `npm test`, on whatever Node the machine has (20 or newer): installs the packages that are missing or
// older than the lockfile, and says so. `--omit=dev` asks for those only that the service runs on. Plain JavaScript on purpose.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const omitsDev = process.argv.includes('--omit=dev')

/** Time for the registry to answer, milliseconds. */
const PATIENCE = 8_000

if (missingPackages().length > 0) {
  install()
  const [left] = missingPackages()
  if (left !== undefined)
    fail(`npm has not installed the package ${left}: is it left out by an \`omit\` in .npmrc?`)
}
// What npm put there has to run here: small Debian images lack a library that Node 26 is linked against.
const ownNode = path.join(root, 'node_modules', '.bin', 'node')
if (existsSync(ownNode) && spawnSync(ownNode, ['--version'], { stdio: 'ignore' }).status !== 0)
  fail('The Node that npm installed does not start on this machine. On Debian: apt-get install libatomic1')

/**
 * Packages of the lockfile that are absent, or there in another version. npm's list of what is installed is not believed alone: a copy
 * or a removal that broke off leaves a list of packages that are gone.
 */
function missingPackages() {
  const installed = packagesOf('node_modules/.package-lock.json')
  const isWanted = ([name, { dev, optional, ...entry }]) => {
    if (name === '' || (dev && omitsDev)) return false
    return !optional || name in installed || isNodeForHere(name, entry)
  }
  const isInPlace = ([name, { version }]) =>
    installed[name]?.version === version && existsSync(path.join(root, name, 'package.json'))
  return Object.entries(packagesOf('package-lock.json'))
    .filter((entry) => isWanted(entry) && !isInPlace(entry))
    .map(([name]) => name.replace('node_modules/', ''))
}

/** A file that is not there, or broken, lists nothing. */
function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(path.join(root, file), 'utf8')).packages ?? {}
  } catch {
    return {}
  }
}

/** Optional packages may be left out on purpose, but not the Node of this platform when the machine's own is too old. */
function isNodeForHere(name, { os, cpu }) {
  const isOld = Number.parseInt(process.versions.node, 10) < 24
  const fits = [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch)
  return isOld && fits && name.startsWith('node_modules/node-')
}

/**
 * `npm ci` removes node_modules before it downloads anything, so it is for the first time only. `npm install` takes the versions of the
 * lockfile too, and puts back what it replaces when it fails. Packages for building and testing stay where they are.
 */
function install() {
  const withDev =
    !omitsDev || Object.values(packagesOf('node_modules/.package-lock.json')).some(({ dev }) => dev)
  const args = [
    ...(existsSync(path.join(root, 'node_modules')) ? ['install', '--no-save'] : ['ci']),
    // Said in full, because NODE_ENV=production would leave them out.
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
      fail('The packages could not be installed; npm says above why.')
  } else if (npm([...args, '--offline'], 'ignore').status !== 0) {
    const url = npm(['config', 'get', 'registry']).stdout.trim()
    const registry = URL.canParse(url) ? new URL(url).host : url
    fail(
      `The package registry ${registry} cannot be reached (${silence}): check the network and the proxy, or name another registry with ` +
        '`npm config set registry URL`.',
    )
  }
}

/** Why the registry does not answer; undefined when it does, whatever it answers. */
function registrySilence() {
  const { status, stderr, error } = npm(['ping', '--fetch-retries=0', `--fetch-timeout=${PATIENCE}`])
  const [, code = ''] = /code (\w+)/.exec(stderr) ?? []
  if (error || code === 'FETCH_ERROR') return `no answer within ${PATIENCE / 1_000} s`
  return status === 0 || /^(E\d+|)$/.test(code) ? undefined : code
}

/** The npm that runs this script, or the machine's. */
function npm(args, output = 'pipe') {
  const own = process.env.npm_execpath ?? ''
  const [command, first] = own.endsWith('npm-cli.js') ? [process.execPath, [own]] : ['npm', []]
  return spawnSync(command, [...first, ...args], {
    cwd: root,
    stdio: ['ignore', output === 'pipe' ? 'pipe' : 'ignore', output],
    encoding: 'utf8',
    // Only a question is bounded; an installation takes as long as the network does.
    ...(output === 'pipe' && { timeout: PATIENCE + 2_000 }),
  })
}

function fail(sentence) {
  console.error(sentence)
  process.exit(1)
}
