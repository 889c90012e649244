import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { parse, stringify } from 'yaml'
import { testKeyspace } from '#test/cassandra/server.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { startPostgrestEndpoint } from '#test/postgrest/endpoint.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { type Block, blocksOf, pages, ROOT } from './pages.ts'

const run = promisify(execFile)

/** Files that a fresh clone does not have, such as data of local runs. */
const NOT_CLONED = ['.git', '.env', 'app', 'data', 'gatehouse.yaml']

/**
 * Stand-ins for requirements of command blocks. Each returns the environment variables that replace the block. Other blocks may require one
 * of the variables, and run if it is set.
 */
const STAND_INS: Readonly<Record<string, (t: TestContext) => Promise<Record<string, string>>>> = {
  supabase: async (t) => {
    const database = await testDatabase()
    await withClient(database.url, (client) =>
      client.query(
        'create table books (id bigint generated always as identity primary key, title text, pages int)',
      ),
    )
    const endpoint = await startPostgrestEndpoint(database.url)
    t.after(() => endpoint.close())
    return { SUPABASE_URL: endpoint.url }
  },
  // Only with an existing server, because a new one takes ten seconds and 800 MB to start.
  cassandra: async (t) => {
    if (!process.env.TEST_CASSANDRA_URL) return {}
    const keyspace = await testKeyspace()
    t.after(() => keyspace.stop())
    return { CASSANDRA_URL: keyspace.url }
  },
}

/** Expected output of each page that is not shown in a block. */
const PRINTED: Readonly<Record<string, readonly RegExp[]>> = {
  'README.md': [
    /"email":"ada@example.com"/,
    /"pages":3168}.*"pages":66}.*"count":2/,
    /Notes on the Analytical Engine/,
    /"author":"Anonymous".*"affected_rows":1/,
    /Loaded 171\d{3} cities/,
    /"success":true/,
  ],
  'docs/guides/pipelines.md': [
    /"would_insert":3.*"rows_fetched":4,"rows_inserted":2/s,
    /"errors":\[\{"index":2,"error":"Column nation must have a value: /,
  ],
  'docs/guides/browser-sessions.md': [
    /access-control-allow-origin: http:\/\/localhost:3000/i,
    /access-control-allow-credentials: true/i,
  ],
}

test('the commands of all documents work as documented', { timeout: 600_000 }, async (t) => {
  if (!(await has('curl')) || !(await has('bash'))) return t.skip('needs curl and bash')
  const commands = pages().map((page) => blocksOf(page).filter(({ language }) => language === 'sh'))
  const variables = await standIns(t, commands.flat())
  const isRun = ({ needs }: Block): boolean => needs === undefined || needs in variables
  const clone = await cloned(settingsOf(commands.flat().filter(isRun)))
  const env = { ...process.env, ...clone.env, ...variables }
  const service = await started(t, clone.folder, env)

  assert.equal(service.printed, sampleOf('README.md', service.port))
  for (const blocks of commands.filter((blocks) => blocks.some(isRun)))
    await t.test(blocks[0]?.page, async (t) => {
      for (const { line, needs } of blocks.filter((block) => !isRun(block)))
        t.diagnostic(`line ${line} is not run: needs ${needs}`)
      const runnable = blocks.filter((block) => isRun(block) && !isStart(block))
      await ran(runnable, {
        folder: clone.folder,
        env: { ...env, GATEHOUSE_URL: service.url },
        port: service.port,
      })
    })
})

const isStart = ({ text }: Block): boolean => /^npm start$/m.test(text)

async function standIns(t: TestContext, blocks: readonly Block[]): Promise<Record<string, string>> {
  const needed = new Set(blocks.flatMap(({ needs }) => needs ?? []))
  const made = [...needed].flatMap((name) => STAND_INS[name]?.(t) ?? [])
  return Object.assign({}, ...(await Promise.all(made)))
}

/** Merges the settings with which the pages start the service, because one service runs for all pages. */
function settingsOf(blocks: readonly Block[]): string {
  const written = blocks.filter(isStart).map(({ page, text }) => {
    const [, yaml] = /^(?:cat > gatehouse\.yaml <<'END'\n([\s\S]*)^END\n)?npm start\n$/m.exec(text) ?? ['']
    assert.notEqual(yaml, '', `${page} starts the service in an unknown way`)
    return parse(yaml ?? '{}')
  })
  return stringify(written.reduce(merged, {}))
}

function merged(one: unknown, other: unknown): unknown {
  if (!isRecord(one) || !isRecord(other)) {
    assert.deepEqual(one, other, 'two pages start the service with different values of one setting')
    return one
  }
  const entries = Object.entries(other).map(([key, value]) => [
    key,
    key in one ? merged(one[key], value) : value,
  ])
  return { ...one, ...Object.fromEntries(entries) }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Creates a folder like a fresh clone with packages installed: links to the repository's files, without data. */
async function cloned(settings: string) {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-clone-'))
  for (const name of await readdir(ROOT))
    if (!NOT_CLONED.includes(name)) await symlink(path.join(ROOT, name), path.join(folder, name))
  await writeFile(path.join(folder, 'gatehouse.yaml'), settings)
  const places = path.join(folder, 'places')
  // curl fails if the response is an error. In blocks with an expected error status, it prints the status instead.
  const plain = ['show-error', String.raw`write-out = "\n"`, 'fail-with-body']
  const failing = ['show-error', String.raw`write-out = "\n%{http_code}\n"`]
  for (const [name, lines] of Object.entries({ plain, failing })) {
    await mkdir(path.join(places, name), { recursive: true })
    await writeFile(path.join(places, name, '.curlrc'), `${lines.join('\n')}\n`)
  }
  // Replaces npx, which takes a second to find the program.
  const npx = path.join(places, 'npx')
  const gatehouse = path.join(ROOT, 'bin/gatehouse.mjs')
  await writeFile(npx, `#!/bin/sh\n[ "$1" = gatehouse ] || exec "$@"\nshift\nexec node ${gatehouse} "$@"\n`)
  await chmod(npx, 0o755)
  const env = {
    PATH: `${places}:${path.join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`,
    PLACES: places,
    CURL_HOME: path.join(places, 'plain'),
    SERVICE_LOG__FORMAT: 'pretty',
  }
  return { folder, env }
}

/** Starts the service as in the README, on a free port. After the test, service and folder are removed. */
async function started(t: TestContext, folder: string, env: NodeJS.ProcessEnv) {
  const service = spawn('sh', ['-c', 'npm start'], {
    cwd: folder,
    env: { ...env, SERVICE_SERVER__PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
    // Its own process group, so that it can be stopped like by Ctrl-C in a terminal.
    detached: true,
  })
  t.after(async () => {
    const ended = once(service.stdout, 'close')
    process.kill(-(service.pid ?? 0), 'SIGINT')
    await ended
    await removeFolder(folder)
  })
  let printed = ''
  service.stdout.on('data', (chunk) => {
    printed += chunk
  })
  while (!/^ready in .*\n/m.test(printed)) {
    assert.equal(service.exitCode, null, `the service exited:\n${printed}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const [, url = '', port = ''] = /gateway +(http:\/\/localhost:(\d+))$/m.exec(printed) ?? []
  const from = printed.indexOf('Gatehouse ')
  return { url, port, printed: printed.slice(from).replace(/[\d.]+ s$/m, '… s') }
}

/** The output of the start as shown on the page, without the key, which only a terminal shows. */
function sampleOf(page: string, port: string): string {
  const [sample] = blocksOf(page).filter(({ text }) => text.startsWith('Gatehouse '))
  const lines = sample?.text.split('\n').filter((line) => !line.includes('shown this once')) ?? []
  return lines
    .join('\n')
    .replaceAll(':8080', `:${port}`)
    .replace(/[\d.]+ s$/m, '… s')
}

type Place = { readonly folder: string; readonly env: NodeJS.ProcessEnv; readonly port: string }

/** Runs the blocks of a page in order in one shell. */
async function ran(blocks: readonly Block[], { folder, env, port }: Place): Promise<void> {
  const parts = blocks.map(({ text, answers }) =>
    answers === undefined ? text : `CURL_HOME=$PLACES/failing\n${text}CURL_HOME=$PLACES/plain\n`,
  )
  const script = ['set -euo pipefail', ...parts.flatMap((part) => [part, `echo '${END}'`])].join('\n')
  const ended = run('bash', ['-c', script.replaceAll('localhost:8080', `localhost:${port}`)], {
    cwd: folder,
    env,
    maxBuffer: 1e8,
  })
  const { stdout } = await ended.catch(({ stdout, stderr }) => {
    const block = blocks[stdout.split(END).length - 1]
    return assert.fail(
      `${block?.page}:${block?.line}\n${block?.text}\n${stdout.split(END).at(-1)}\n${stderr}`,
    )
  })
  const printed = stdout.split(`${END}\n`)
  for (const [index, block] of blocks.entries()) judge(block, printed[index] ?? '')
  for (const wanted of PRINTED[blocks[0]?.page ?? ''] ?? []) assert.match(stdout, wanted)
}

const END = '--- end of a block'

/** Compares the output of a block with the output shown on the page. */
function judge({ page, line, answers, output }: Block, printed: string): void {
  const lines = printed.split('\n').filter((text) => text.trim() !== '')
  if (answers !== undefined) assert.equal(lines.at(-1), answers, `${page}:${line}`)
  if (output?.language === 'text') assert.equal(lines.join('\n'), output.text.trim(), `${page}:${line}`)
  if (output?.language !== 'json') return
  contains(lastAnswer(lines), JSON.parse(output.text), `${page}:${line}: ${printed}`)
}

/** The rows of a relation begin lines of their own. */
function lastAnswer(lines: readonly string[]): unknown {
  const starts = lines.flatMap((text, index) => (text.startsWith('{') ? [index] : []))
  for (const start of starts.toReversed())
    for (const end of [start + 1, lines.length])
      try {
        return JSON.parse(lines.slice(start, end).join(''))
      } catch {
        // It begins earlier.
      }
  return {}
}

/** Asserts that `found` has all members of `shown`. A page may omit members, and writes … for values that vary. */
function contains(found: unknown, shown: unknown, where: string): void {
  if (shown === '…') {
    assert.notEqual(found, undefined, where)
    return
  }
  if (Array.isArray(shown) && Array.isArray(found)) {
    assert.equal(found.length, shown.length, where)
    for (const [index, item] of shown.entries()) contains(found[index], item, where)
    return
  }
  if (!isRecord(shown) || !isRecord(found)) {
    assert.deepEqual(found, shown, where)
    return
  }
  for (const [key, value] of Object.entries(shown)) contains(found[key], value, `${where} (${key})`)
}

const has = (program: string): Promise<boolean> =>
  run(program, ['--version']).then(
    () => true,
    () => false,
  )
