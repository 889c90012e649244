import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { newFolder } from '#test/embedded.ts'

const setup = path.resolve(import.meta.dirname, '../../scripts/setup.mjs')

type Entry = { readonly version: string; readonly dev?: true; readonly optional?: true }
type Packages = Readonly<Record<string, Entry>>
const RUNS: Packages = { fastify: { version: '5.0.0' }, pg: { version: '8.0.0' } }
const TESTS: Packages = { biome: { version: '2.0.0', dev: true } }
const WINDOWS: Packages = { windows: { version: '1.0.0', optional: true } }

const PROJECT = { dependencies: { fastify: '5.0.0', pg: '8.0.0' } }

/** A fake npm: records its arguments and creates the packages of the lockfile. */
const NPM = `
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
const args = process.argv.slice(2)
appendFileSync('calls', args.join(' ') + '\\n')
if (args[0] === 'ping' || args[0] === 'config') process.exit(0)
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const isWanted = ([name, { dev, optional }]) => name !== '' && !optional && !(dev && args.includes('--omit=dev'))
const wanted = Object.entries(packages).filter(isWanted)
for (const [name] of wanted) {
  mkdirSync(name, { recursive: true })
  writeFileSync(name + '/package.json', '{}')
}
writeFileSync('node_modules/.package-lock.json', JSON.stringify({ packages: Object.fromEntries(wanted) }))
`

/** A clone with a lockfile and with the packages of `installed` in node_modules. */
async function clone(t: TestContext, installed: Packages | undefined) {
  const folder = await newFolder(t)
  const file = (...names: string[]) => path.join(folder, ...names)
  await mkdir(file('scripts'), { recursive: true })
  await cp(setup, file('scripts/setup.mjs'))
  await writeFile(file('npm-cli.js'), NPM)
  await writeFile(file('package.json'), JSON.stringify({ type: 'module', ...PROJECT }))
  const write = (name: string, packages: object) =>
    writeFile(file(name), JSON.stringify({ lockfileVersion: 3, packages }))
  await write('package-lock.json', { '': PROJECT, ...inModules({ ...RUNS, ...TESTS, ...WINDOWS }) })
  if (installed !== undefined) {
    for (const name of Object.keys(installed)) {
      await mkdir(file('node_modules', name), { recursive: true })
      await writeFile(file('node_modules', name, 'package.json'), '{}')
    }
    await write('node_modules/.package-lock.json', inModules(installed))
    await writeFile(file('node_modules/kept'), '')
  }
  return {
    file,
    /** Runs the script as npm does. Returns its output and the recorded npm calls. */
    async run(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
      await rm(file('calls'), { force: true })
      const child = spawn(process.execPath, [file('scripts/setup.mjs'), ...args], {
        env: { PATH: process.env.PATH ?? '', npm_execpath: file('npm-cli.js'), ...env },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let output = ''
      child.stderr.on('data', (chunk) => {
        output += chunk
      })
      const [code] = await once(child, 'close')
      const calls = (await readFile(file('calls'), 'utf8').catch(() => '')).split('\n')
      return { code, output, installs: calls.filter((call) => /^(ci|install)\b/.test(call)) }
    },
  }
}

const inModules = (packages: Packages): Packages =>
  Object.fromEntries(Object.entries(packages).map(([name, entry]) => [`node_modules/${name}`, entry]))

const QUIET = { code: 0, output: '', installs: [] }

test('a start requires only production packages, and installs nothing if they are present', async (t) => {
  const { run, file } = await clone(t, RUNS)
  assert.deepEqual(await run(['--omit=dev']), QUIET)
  assert.equal(await readFile(file('node_modules/kept'), 'utf8'), '')
})

test('tests require all packages, and add missing ones without removing others', async (t) => {
  const { run, file } = await clone(t, RUNS)
  const { code, output, installs } = await run([], { NODE_ENV: 'production' })
  assert.equal(code, 0)
  assert.match(output, /^Installing packages \(once; .*\) …\n$/)
  assert.match(installs.join(), /^install --no-save --include=dev --ignore-scripts/)
  assert.equal(await readFile(file('node_modules/kept'), 'utf8'), '')
  assert.deepEqual(await run(), QUIET)
})

test('a fresh clone is installed by npm ci, for a start without development packages', async (t) => {
  const { run } = await clone(t, undefined)
  assert.match((await run(['--omit=dev'])).installs.join(), /^ci --omit=dev --ignore-scripts/)
  assert.deepEqual(await run(['--omit=dev']), QUIET)
})

test('packages of a workspace are installed with the others, and its link for a start as well', async (t) => {
  const { run, file } = await clone(t, undefined)
  const workspace = {
    'node_modules/@gatehouse/client': { resolved: 'packages/client', link: true },
    'packages/client': { version: '0.1.0' },
    'packages/client/node_modules/typescript': { version: '5.9.3', dev: true },
  }
  const packages = { '': PROJECT, ...inModules(RUNS), ...workspace }
  await writeFile(file('package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }))
  assert.equal((await run(['--omit=dev'])).installs.length, 1)
  assert.deepEqual(await run(['--omit=dev']), QUIET)
  await rm(file('node_modules/@gatehouse/client'), { recursive: true })
  assert.equal((await run(['--omit=dev'])).installs.length, 1)
  assert.match((await run()).installs.join(), /^install --no-save --include=dev/)
  assert.deepEqual(await run(), QUIET)
})

test('an update keeps installed development packages', async (t) => {
  const { run } = await clone(t, { ...RUNS, pg: { version: '7.0.0' }, ...TESTS })
  assert.match((await run(['--omit=dev'])).installs.join(), /^install --no-save --include=dev/)
})

test('installs packages that are listed but missing, and recovers from a truncated list', async (t) => {
  const { run, file } = await clone(t, { ...RUNS, ...TESTS })
  await rm(file('node_modules/fastify'), { recursive: true })
  assert.equal((await run(['--omit=dev'])).installs.length, 1)
  await writeFile(file('node_modules/.package-lock.json'), '{ "packages": {')
  assert.equal((await run(['--omit=dev'])).installs.length, 1)
  assert.deepEqual(await run(['--omit=dev']), QUIET)
})

test('an unreachable registry is reported in one sentence, and installed packages are kept', {
  timeout: 60_000,
}, async (t) => {
  const { run, file } = await clone(t, { pg: { version: '7.0.0' } })
  const began = performance.now()
  const { code, output } = await run(['--omit=dev'], {
    npm_execpath: '',
    npm_config_registry: 'http://127.0.0.1:9/',
    npm_config_cache: file('cache'),
    HOME: file('home'),
  })
  assert.equal(code, 1)
  const [, sentence = '', ...more] = output.trim().split('\n')
  assert.match(
    sentence,
    /^The package registry 127\.0\.0\.1:9 cannot be reached \(ECONNREFUSED\): check the network/,
  )
  assert.deepEqual(more, [])
  assert.ok(performance.now() - began < 50_000)
  assert.equal(await readFile(file('node_modules/pg/package.json'), 'utf8'), '{}')
})
