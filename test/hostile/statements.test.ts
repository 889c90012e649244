import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startEmbedded } from '#kernel/db/embedded.ts'
import { provision } from '#kernel/db/provision.ts'
import { withClient } from '#test/database.ts'
import { newFolder, optionsFor } from '#test/embedded.ts'
import { freePort } from '#test/free-port.ts'
import { type Answer, testService } from '#test/harness.ts'
import {
  HOSTILE,
  type Names,
  namesFrom,
  type Request,
  refusedWith,
  requestsOf,
  structureSql,
} from './statement-forms.ts'
import { LOGGING, type Logged, openStatementLog, type Shape, shapeOf } from './statement-log.ts'

const ROLE = { name: 'gateway_client', password: 'correct horse' }
const port = `${await freePort()}`
const dir = await newFolder({ after })
const server = await startEmbedded(
  optionsFor(dir, { settings: { ...LOGGING, listen_addresses: '127.0.0.1', port } }),
)
const superuser = onServer(server.superuserUrl)
await provision(superuser, { roles: [ROLE], databases: [{ name: 'watched', owner: ROLE.name }] })
const url = `postgres://${ROLE.name}:${encodeURIComponent(ROLE.password)}@127.0.0.1:${port}/watched`

const t = await testService({ config: { clients: { watched: { url } } } })
const key = await t.key(['*'], { client_name: 'watched' })
const statements = openStatementLog(dir, server.superuserUrl, ROLE.name)
/** Counts requests. They run one at a time, so that logged statements belong to the current one. */
let turn = 0

const CANARY = 'select count(*)::int as rows, sum(id)::int as sum from canary'
const RELATIONS = `select count(*)::int as relations from pg_class where relnamespace = 'public'::regnamespace`

/** Names and values of one round of requests. */
const PAIRS = HOSTILE.flatMap((text, at) => (at % 2 === 0 ? [[text, HOSTILE[at + 1] ?? 'a']] : []))

/** Texts that could change a statement. The others only look odd, or are harmless after a word. */
const INJECTIONS = HOSTILE.slice(0, 12)

/** Statements that harmless requests of each form cause. */
const known = { shapes: new Set<string>(), lookups: new Set<string>() }

before(async () => {
  await run(`
    create table canary (id int primary key);
    insert into canary values (1), (2), (4);
    create function greet(name text) returns text language sql as 'select name'`)
  for (const texts of [['plain'], ...PAIRS]) await run(structureSql(namesFrom(...texts)))
  // Three times, because repeated statements are prepared, and prepared statements are logged differently.
  for (let round = 0; round < 3; round++) await all(requestsOf(namesFrom('plain'), 'plain', ++turn), 'plain')
  const harmless = await statements()
  await refused(refusedWith('zz'))
  known.shapes = new Set(harmless.map(({ text }) => shapeOf(text).shape))
  // Either kind of request may read the catalogue, depending on the age of the cached one.
  known.lookups = new Set([...harmless, ...(await statements())].map(({ text }) => text).filter(isLookup))
})

test('names and values cannot change the structure of a statement', async () => {
  for (const [at, texts] of PAIRS.entries()) {
    const names = namesFrom(...texts)
    const [one = '', other = ''] = PAIRS[(at + 7) % PAIRS.length] ?? []
    const value = `${one} v${at}v ${other}`
    await all(requestsOf(names, value, ++turn), texts.join(' '))
    const seen = await statements()
    assert.ok(seen.length > 20, 'the log has too few statements')
    for (const logged of seen) isKnown(logged, names, value)
    assert.ok(
      seen.some(({ parameters }) => parameters.includes(`v${at}v`)),
      'values are parameters',
    )
  }
})

test('a rejected request causes no statement', async () => {
  for (const text of INJECTIONS) {
    await refused(refusedWith(text))
    const seen = await statements()
    assert.deepEqual(
      seen.filter((logged) => !known.lookups.has(logged.text)),
      [],
      text,
    )
  }
})

test('all tables and rows still exist afterwards', async () => {
  await withClient(url, async (client) => {
    assert.deepEqual((await client.query(CANARY)).rows, [{ rows: 3, sum: 7 }])
    // The table and its key, and the idempotency table with its key and an index.
    assert.deepEqual((await client.query(RELATIONS)).rows, [{ relations: 5 }])
  })
})

/** Whether a statement reads the system catalogue or sets the search path, without any text of a request. */
function isLookup(text: string): boolean {
  return (
    /\bfrom (?:pg_catalog\.)?pg_\w|^select pg_catalog\.set_config\('search_path', 'pg_catalog, pg_temp'/.test(
      text,
    ) && shapeOf(text).names.length === 0
  )
}

/** Asserts that a statement has a known shape, uses only existing names and does not contain the value. */
function isKnown({ text }: Logged, names: Names, value: string): void {
  const { shape, names: used }: Shape = shapeOf(text)
  assert.ok(known.shapes.has(shape), `unknown shape: ${shape}\nof: ${text}`)
  assert.ok(!shape.includes(value), shape)
  const allowed = new Set<string>([...Object.values(names), ...FIXED])
  assert.deepEqual(
    used.filter((name) => !allowed.has(name)),
    [],
    text,
  )
}

/** Names in the gateway's own statements. */
const FIXED = ['public', 'a'] as const

async function all(requests: readonly Request[], what: string): Promise<void> {
  for (const request of requests) {
    const answer = await send(request)
    assert.equal(answer.status, 200, `${what}: ${answer.text} to ${JSON.stringify(request)}`)
  }
}

async function refused(requests: readonly Request[]): Promise<void> {
  for (const request of requests) {
    const answer = await send(request)
    assert.ok(
      [400, 404].includes(answer.status),
      `${answer.status} ${answer.text} to ${JSON.stringify(request)}`,
    )
  }
}

function send({ method, path, body, headers }: Request): Promise<Answer> {
  return key.send(method, path, {
    headers: { 'x-service-client': 'watched', ...headers },
    ...(body !== undefined && { body }),
  })
}

/** Runs SQL as a superuser with SET ROLE, so that it does not appear in the log of the client's role. */
function run(sql: string): Promise<unknown> {
  return withClient(onServer(server.superuserUrl, 'watched'), (client) =>
    client.query(`set role ${ROLE.name}; ${sql}`),
  )
}

/** The server's URL over TCP, for a database. */
function onServer(address: string, database = 'postgres'): string {
  const { password } = new URL(address)
  return `postgres://postgres:${password}@127.0.0.1:${port}/${database}`
}
