import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { type Actor, type Answer, actor, testService } from '#test/harness.ts'
import { prepareLogging } from './logging-tables.ts'

/** Three clients of one database: the logging client, one of the configuration and one that was registered later. All may log in as its owner. */
const database = await testDatabase()
await prepareLogging(database.url, undefined)
const sql = async (text: string) =>
  withClient(database.url, async (client) => (await client.query(text)).rows)
await sql(`
  create function public.wipe() returns setof bigint language sql
    as 'delete from public.database_audit_log returning id';
  insert into public.database_audit_log
    (created_at, request_id, service_client, operation, schema_name, object_name, object_type, statement, status)
    values (now(), 'r', 'c', 'o', 's', 'n', 't', 'x', 'succeeded')`)
const t = await testService({
  config: {
    clients: {
      logging: { url: database.url },
      twin: { url: database.url, enforce_api_keys: false },
      other: { url: (await testDatabase()).url, enforce_api_keys: false },
    },
  },
})
after(async () => {
  await t.stop()
  await database.drop()
})
const registered = await t.admin.post('/admin/clients', { client_name: 'late', url: database.url })
assert.equal(registered.status, 201, registered.text)
const TWINS = ['twin', 'late']

const ALL = ['*', 'management.*', 'management.functions.write', 'gateway.query']
const boundTo = new Map<string, string>()
for (const client_name of ['logging', ...TWINS])
  boundTo.set(client_name, (await t.key(ALL, { client_name })).apiKey)
const unbound = (await t.key(['*'], { client_name: null })).apiKey
const ADMIN = t.admin.headers.apikey ?? ''

const LOG = 'database_audit_log'
const COLUMN = { operations: [{ operation: 'add_column', column: { name: 'more', data_type: 'text' } }] }
const DDL = { ddl: 'create function public.made() returns int language sql return 1' }
const ONE = [{ eq_column: 'id', eq_value: 1 }]

/** Method, path, body and further headers. */
type Asked = readonly [string, string, object?, Record<string, string>?]
const READS: Readonly<Record<string, Asked>> = {
  fetch: ['POST', '/gateway/fetch', { table_name: LOG }],
  data: ['GET', `/data?view=${LOG}&eq_column=id&eq_value=1`],
  count: ['POST', '/query/count', { table_name: LOG }],
  sql: ['POST', '/gateway/query', { query: `select id from ${LOG}` }],
  'a transaction that reads': ['POST', '/gateway/transaction', { operations: [{ id: 'a', kind: 'fetch', payload: { table_name: LOG } }] }],
} // biome-ignore format: a table
const WRITES: Readonly<Record<string, Asked>> = {
  insert: ['PUT', '/gateway/insert', { table_name: 'pipeline_step_log', insert_body: { step: 'sink' } }],
  update: ['POST', '/gateway/update', { table_name: LOG, set: { status: 'failed' }, conditions: ONE }],
  delete: ['DELETE', '/gateway/delete', { table_name: LOG, conditions: ONE }],
  transaction: ['POST', '/gateway/transaction', { operations: [{ id: 'a', kind: 'delete', payload: { table_name: LOG, conditions: ONE } }] }],
  'its idempotency key': [...(READS['a transaction that reads'] as [string, string, object]), { 'idempotency-key': 'once' }],
  sql: ['POST', '/gateway/query', { query: `delete from ${LOG}` }],
  'a function': ['POST', '/gateway/rpc', { function: 'wipe' }],
} // biome-ignore format: a table
const CHANGES: Readonly<Record<string, Asked>> = {
  'a new table': ['POST', '/management/tables', { table_name: 'made', columns: [{ name: 'a', data_type: 'text' }] }],
  'a new column': ['PATCH', `/management/tables/${LOG}`, COLUMN],
  'a table less': ['DELETE', `/management/tables/${LOG}`, {}],
  'a column less': ['DELETE', `/management/tables/${LOG}/columns/statement`, {}],
  'an index': ['POST', '/management/indexes', { table_name: LOG, columns: ['status'] }],
  'an index less': ['DELETE', '/management/indexes/database_audit_log_by_time', {}],
  'an extension': ['POST', '/management/extensions/install', { extension_name: 'citext' }],
  'a function': ['PUT', '/management/functions', DDL],
  'a function less': ['DELETE', '/management/functions', { function_name: 'wipe' }],
} // biome-ignore format: a table

const as = (client: string, apikey?: string): Actor =>
  actor(t.url, { ...(apikey !== undefined && { apikey }), 'x-service-client': client })
const ask = (who: Actor, [method, path, body, headers = {}]: Asked): Promise<Answer> =>
  who.send(method, path, { ...(body !== undefined && { body }), headers })
const outcome = ({ status, body }: Answer) => [status, body.code ?? 'ok']
/** Also the structure. */
const stored = () =>
  sql(`select (select json_agg(l) from ${LOG} l)::text as rows,
    (select string_agg(concat(oid, relname, relnatts), ' ' order by oid) from pg_class where relnamespace = 'public'::regnamespace) as tables,
    (select count(*) from pg_proc where pronamespace = 'public'::regnamespace) as functions, (select count(*) from pg_extension) as extensions`)

for (const [name, asked] of Object.entries(READS))
  test(`${name} of the logging database, under whichever name, needs the admin key or a key bound to that name`, async () => {
    for (const client of TWINS) {
      assert.deepEqual(outcome(await ask(as(client), asked)), [401, 'api_key_required'], client)
      assert.deepEqual(
        outcome(await ask(as(client, unbound), asked)),
        [403, 'api_key_client_mismatch'],
        client,
      )
      for (const key of [ADMIN, boundTo.get(client)]) assert.deepEqual(outcome(await ask(as(client, key), asked)), [200, 'ok']) // biome-ignore format: short
    }
  })

for (const [name, asked] of Object.entries(WRITES))
  test(`${name}: the logging database is not written, under whichever name`, async () => {
    const before = await stored()
    for (const who of ['bound', 'admin']) {
      const keyFor = (client: string) => (who === 'bound' ? boundTo.get(client) : ADMIN)
      const expected = outcome(await ask(as('logging', keyFor('logging')), asked))
      assert.ok(Number(expected[0]) >= 400, String(expected))
      for (const client of TWINS)
        assert.deepEqual(outcome(await ask(as(client, keyFor(client)), asked)), expected, client)
    }
    assert.deepEqual(await stored(), before)
  })

for (const [name, asked] of Object.entries(CHANGES))
  test(`management: ${name} is refused on the logging database, under whichever name`, async () => {
    const before = await stored()
    for (const [client, key] of boundTo) {
      const refused = await ask(as(client, key), asked)
      assert.deepEqual(outcome(refused), [403, 'read_only'], `${client} ${refused.text}`)
    }
    assert.deepEqual(await stored(), before)
  })

test('a pipeline reads the logging database only for the admin key and never writes to it, under whichever name', async () => {
  const { apiKey } = await t.key(ALL, { client_name: 'other' })
  await withClient(t.config.clients.other?.url ?? '', (client) =>
    client.query('create table bin (id bigint)'),
  )
  for (const client of TWINS) {
    const reads = { source: { table_name: LOG, columns: ['id'], client }, sink: { table_name: 'bin' }, dry_run: true }
    const writes = { source: { table_name: 'bin' }, sink: { table_name: LOG, client }, dry_run: true }
    const run = async (who: Actor, body: object) => outcome(await who.post('/pipelines', body))
    assert.deepEqual(await run(as('other', apiKey), reads), [403, 'api_key_client_mismatch'])
    assert.deepEqual(await run(as('other'), reads), [401, 'api_key_required'])
    assert.deepEqual(await run(as('other', ADMIN), reads), [200, 'ok'])
    assert.deepEqual(await run(as('other', ADMIN), writes), [403, 'read_only'])
    assert.deepEqual(await run(as(client, boundTo.get(client)), { ...writes, source: { table_name: LOG } }), [403, 'read_only'])
  } // biome-ignore format: a table
})

test('a public route opens no part of the logging database without a key, under whichever name', async () => {
  for (const client of TWINS) {
    const route = { client_name: client, table_name: LOG, allowed_ops: ['fetch'] }
    const open = await t.admin.post('/admin/public-routes', { ...route, route_key: `open-${client}`, requires_key: false })
    assert.deepEqual(outcome(open), [400, 'invalid_public_route'])
    const keyed = await t.admin.post('/admin/public-routes', { ...route, route_key: `keyed-${client}` })
    assert.equal(keyed.status, 201, keyed.text)
    await withClient(t.controlUrl, (control) => control.query('update service.public_route set requires_key = false'))
    const call = (who: Actor) => who.post(`/public/keyed-${client}/fetch`)
    assert.equal((await call(t.anon)).status, 401)
    assert.equal((await call(actor(t.url, { apikey: boundTo.get(client) ?? '' }))).status, 200)
  } // biome-ignore format: a table
})

test('a restore does not replace the logging database, under whichever name', async () => {
  const backup_id = '01900000-0000-7000-8000-000000000001'
  await withClient(t.controlUrl, (control) =>
    control.query(
      `insert into service.backup_job (id, job_type, status, client_name, format, location, created_at, updated_at)
       values ($1, 'backup', 'completed', 'other', 'dump', 'nowhere', now(), now())`,
      [backup_id],
    ),
  )
  for (const client_name of ['logging', ...TWINS]) {
    const refused = await t.admin.post(`/admin/backups/${backup_id}/restore`, { client_name, confirm: true })
    assert.deepEqual(outcome(refused), [400, 'restore_refused'], refused.text)
  }
})

test('a client of another database is no logging client', async () => {
  const own = as('other', (await t.key(['*'], { client_name: null })).apiKey)
  const made = await own.post('/gateway/query', {
    query: 'create table if not exists mine (id int primary key)',
  })
  assert.equal(made.status, 200, made.text)
  const put = await own.send('PUT', '/gateway/insert', {
    body: { table_name: 'mine', insert_body: { id: 1 } },
  })
  assert.equal(put.status, 200, put.text)
  assert.equal((await as('other').post('/gateway/fetch', { table_name: 'mine' })).status, 200)
})
