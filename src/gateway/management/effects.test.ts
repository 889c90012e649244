import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'
import { catalogueDigest } from '#test/management/catalogue-digest.ts'
import { EFFECTS, type Effect, PLAIN, path, REFERENCE } from '#test/management/effects.ts'
import { createPipelineRegistry } from '../pipelines/registry.ts'
import { OPERATIONS, type Operation } from './operations.ts'

/**
 * Two clients of one database: `app` has row-level security, a public route and a pipeline; keys for `twin`, which has none of these, make
 * the changes.
 */
const suffix = randomBytes(4).toString('hex')
const [anon, member] = [`anon_${suffix}`, `authenticated_${suffix}`]
const database = await testDatabase()
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
const sql = (text: string) => withClient(database.url, (client) => client.query(text))
await onServer(`create role ${anon} nologin; create role ${member} nologin;
  grant ${anon}, ${member} to "${new URL(database.url).username}"`)
const copies = {
  source: { client: 'app', table_name: 'piped' },
  sink: { client: 'app', table: 'public.copies' },
}
const t = await testService({
  config: {
    clients: {
      app: {
        url: database.url,
        row_level_security: { enabled: true, anonymous_role: anon, signed_in_role: member },
      },
      twin: { url: database.url },
    },
  },
  pipelines: createPipelineRegistry(new Map([['copies', copies]])),
})
after(async () => {
  await t.stop()
  await database.drop()
  await onServer(`drop role ${anon}; drop role ${member}`)
})

await sql('create table parent (id bigint primary key, word text unique); insert into parent values (1)')
await sql('create table piped (id bigint primary key, a text); create table copies (id bigint primary key)')
await sql('create table known (id bigint primary key); create table secret (id bigint references known)')
await sql('create table precious (id bigint primary key); insert into precious values (1), (2)')

const keyFor = async (rights: readonly string[], client: string) => {
  const { apiKey } = await t.key(rights, { client_name: client })
  return actor(t.url, { apikey: apiKey, 'x-service-client': client })
}

const CASES = (Object.entries(EFFECTS) as [Operation, Record<string, Effect>][]) // the keys of a record of operations
  .flatMap(([operation, effects]) =>
    Object.entries(effects).map(([effect, its], index) => ({
      operation,
      effect,
      its,
      name: `${operation}_${index}`,
    })),
  )
// Before the first request, which reads the catalogue.
for (const { name, its } of CASES)
  await sql(`create table ${name} (id bigint primary key, a text); ${its.sql?.(name) ?? ''}`)
for (const { name, its } of CASES)
  if (its.route !== undefined)
    assert.equal((await t.admin.post('/admin/public-routes', its.route(name))).status, 201)

for (const { operation, effect, its, name } of CASES)
  test(`${operation}: ${effect}, with exactly the rights to it`, async () => {
    const { method, right } = OPERATIONS[operation]
    const { client = 'twin', holds = [] } = its
    const needed = [right, ...its.needs(name)]
    const ask = async (rights: readonly string[]) =>
      (await keyFor([...holds, ...rights], client)).send(method, its.path(name), {
        ...(method !== 'GET' && { body: its.body?.(name, anon) ?? {} }),
      })
    await withClient(database.url, async (connection) => {
      const before = await catalogueDigest(connection)
      for (const missing of needed) {
        const refused = await ask(needed.filter((one) => one !== missing))
        const details = refused.body.data?.details
        assert.deepEqual([refused.status, details?.required_rights], [403, [missing]], refused.text)
      }
      assert.equal(await catalogueDigest(connection), before)
    })
    const changed = await ask(needed)
    assert.equal(changed.status, 200, changed.text)
  })

test('a column for what a pipeline of the other client reads or writes needs the rights to the rows', async () => {
  for (const table of ['piped', 'copies']) {
    const body = { operations: [{ operation: 'add_column', column: PLAIN }] }
    const ask = async (...rights: string[]) =>
      (await keyFor(['management.tables.write', ...rights], 'twin')).send('PATCH', path(table), { body })
    const refused = await ask()
    assert.deepEqual(refused.body.data?.details?.required_rights, [`${table}.read`, `${table}.write`])
    assert.equal((await ask(`${table}.read`, `${table}.write`)).status, 200)
  }
})

test('no wildcard lets a key run code in a database that has row-level security for another client', async () => {
  const ddl = `create or replace function wild() returns int language sql as 'select 1'`
  const upsert = async (text: string, ...rights: string[]) =>
    (await keyFor(rights, 'twin')).send('PUT', '/management/functions', { body: { ddl: text } })
  for (const wildcard of ['*', 'management.*']) {
    const refused = await upsert(ddl, wildcard)
    assert.deepEqual(
      refused.body.data?.details?.required_rights,
      ['management.functions.write'],
      refused.text,
    )
  }
  assert.equal((await upsert(ddl, 'management.functions.write')).status, 200)
  const definer = await upsert(`${ddl} security definer`, 'management.functions.write')
  assert.deepEqual([definer.status, definer.body.code], [400, 'invalid_function'])
})

test('a table that goes by cascade is named only to a key that may know of it', async () => {
  const key = await keyFor(['management.tables.drop'], 'twin')
  const refused = await key.send('DELETE', path('known'), { body: { cascade: true } })
  assert.deepEqual(refused.body.data?.details?.required_rights, ['management.tables.write', 'gateway.read', 'gateway.write']) // biome-ignore format: short
  assert.doesNotMatch(refused.text, /secret/)
})

test('the row that a column refers to does not take other rows with it', async () => {
  const key = await keyFor(['management.tables.write', 'precious.read', 'precious.write', 'parent.*'], 'twin')
  const column = { name: 'f', data_type: 'serial', references: { ...REFERENCE, on_delete: 'cascade' } }
  const body = { operations: [{ operation: 'add_column', column }] }
  assert.equal((await key.send('PATCH', path('precious'), { body })).status, 403)
  assert.equal((await sql('select from precious')).rowCount, 2)
})
