import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'
import { fail } from '../errors.ts'
import { createAuditLog } from './audit.ts'
import { OPERATIONS } from './operations.ts'

const t = await testService()
const key = await t.key(['management.tables.write', 'management.read', 'gateway.*'])

async function audited(object: string) {
  const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'logging' })
  const body = {
    table_name: 'database_audit_log',
    conditions: [{ eq_column: 'object_name', eq_value: object }],
    sort_by: { field: 'id' },
  }
  return (await admin.post('/gateway/fetch', body)).body.data
}

test('a new table has its columns, key and defaults, and can be used at once', async () => {
  const made = await key.post('/management/tables', {
    table_name: 'orders',
    columns: [
      { name: 'reference', data_type: 'varchar(20)', nullable: false, unique: true },
      { name: 'total', data_type: 'numeric(12,2)', default_expression: '0' },
      { name: 'made_at', data_type: 'timestamptz', default_expression: 'now()' },
    ],
  })
  assert.equal(made.status, 200, made.text)
  const { schema_name, table_name, columns } = made.body.data
  assert.deepEqual([schema_name, table_name], ['public', 'orders'])
  assert.deepEqual(
    columns.map(({ name, data_type, nullable, primary_key }: Record<string, unknown>) => [
      name,
      data_type,
      nullable,
      primary_key,
    ]),
    [
      ['id', 'bigint', false, true],
      ['reference', 'character varying(20)', false, false],
      ['total', 'numeric(12,2)', true, false],
      ['made_at', 'timestamp with time zone', true, false],
    ],
  )
  const inserted = await key.post('/gateway/insert', {
    table_name: 'orders',
    insert_body: { reference: 'A-1' },
  })
  assert.match(inserted.text, /"total":0\.00/)
  const [row, ...others] = await audited('orders')
  assert.deepEqual(others, [])
  assert.deepEqual(
    [row.status, row.operation, row.service_client, row.actor_key_id],
    ['succeeded', 'create_table', 'default', key.keyId],
  )
  assert.match(row.statement, /^create table "public"\."orders"/)
})

test('a cast in a default keeps its length, precision or fields', async () => {
  const table_name = 'modified'
  const defaults = {
    days: ["interval '30' day", 'P30D'],
    span: ["interval(0) '1.7 seconds'", 'PT2S'],
    price: ['1.239::numeric(4,2)', '1.24'],
    short: ["'abcdef'::varchar(3)", 'abc'],
    letter: ["'xyz'::char", 'x'],
    second: ["timestamp(0) '2026-01-01 10:00:00.6'", '2026-01-01 10:00:01'],
    list: ["'{1.239}'::numeric(4,2)[]", '{1.24}'],
  } as const
  const columns = Object.entries(defaults).map(([name, [default_expression]]) => ({ name, data_type: 'text', default_expression })) // biome-ignore format: short
  const made = await key.post('/management/tables', { table_name, columns })
  assert.equal(made.status, 200, made.text)
  const { body } = await key.post('/gateway/insert', { table_name, insert_body: {} })
  for (const [name, [expression, value]] of Object.entries(defaults))
    assert.equal(body.data[0][name], value, expression)
  for (const default_expression of ["interval(word) '1'", "'1'::numeric(now())", "'a'::text(3)"]) {
    const operations = [{ operation: 'set_default', column_name: 'days', default_expression }]
    const refused = await key.send('PATCH', `/management/tables/${table_name}`, { body: { operations } })
    assert.ok(refused.status === 400, refused.text)
  }
})

test('an existing name gets 409, even with if_not_exists, and is logged as failed', async () => {
  const body = { table_name: 'twice', columns: [{ name: 'a', data_type: 'text' }], if_not_exists: true }
  assert.equal((await key.post('/management/tables', body)).status, 200)
  const again = await key.post('/management/tables', body)
  assert.deepEqual([again.status, again.body.code], [409, 'object_exists'])
  assert.deepEqual(
    (await audited('twice')).map(({ status }: { status: string }) => status),
    ['succeeded', 'failed'],
  )
  const many = await Promise.all(
    Array.from({ length: 10 }, () => key.post('/management/tables', { ...body, table_name: 'race' })),
  )
  assert.deepEqual(many.map(({ status }) => status).sort(), [200, ...Array.from({ length: 9 }, () => 409)])
})

test('a schema, a table or a column that does not exist gets 404', async () => {
  const column = { name: 'a', data_type: 'text' }
  const own = await t.key(['management.*', 'gateway.*'])
  assert.equal(
    (await own.post('/management/tables', { table_name: 'present', columns: [column] })).status,
    200,
  )
  const edit = (operation: object) =>
    own.send('PATCH', '/management/tables/present', { body: { operations: [operation] } })
  for (const [name, answer] of Object.entries({
    'create in a schema': await own.post('/management/tables', { table_name: 'a', schema_name: 'nowhere' }),
    'drop column': await own.send('DELETE', '/management/tables/present/columns/nothing'),
    'rename column': await edit({ operation: 'rename_column', column_name: 'nothing', new_name: 'b' }),
    'drop default': await edit({ operation: 'drop_default', column_name: 'nothing' }),
    'edit table': await own.send('PATCH', '/management/tables/nothing', {
      body: { operations: [{ operation: 'drop_default', column_name: 'a' }] },
    }),
    'drop table': await own.send('DELETE', '/management/tables/nothing'),
    'create index': await own.post('/management/indexes', { table_name: 'present', columns: ['nothing'] }),
    'drop index': await own.send('DELETE', '/management/indexes/nothing'),
    'drop function': await own.send('DELETE', '/management/functions', {
      body: { function_name: 'nothing', arg_types: [] },
    }),
  }))
    assert.equal(answer.status, 404, `${name}: ${answer.text}`)
})

test('fields of a change in the query string are refused, not ignored', async () => {
  const own = await t.key(['management.*'])
  assert.equal((await own.post('/management/tables', { table_name: 'meant' })).status, 200)
  for (const query of ['schema_name=elsewhere', 'cascade=true']) {
    const { status, body } = await own.send('DELETE', `/management/tables/meant?${query}`)
    assert.deepEqual([status, body.code], [400, 'validation_error'])
  }
  assert.equal((await own.send('DELETE', '/management/tables/meant')).status, 200)
})

test('on_delete is accepted in lower and upper case, with spaces or underscores', async () => {
  assert.equal((await key.post('/management/tables', { table_name: 'parents' })).status, 200)
  for (const [index, on_delete] of ['cascade', 'CASCADE', 'SET NULL', 'set_null', 'no_action'].entries()) {
    const references = { table: 'parents', column: 'id', on_delete }
    const columns = [{ name: 'parent', data_type: 'bigint', references }]
    const made = await key.post('/management/tables', { table_name: `children_${index}`, columns })
    assert.equal(made.status, 200, made.text)
  }
})

test('invalid types and defaults are rejected, and nothing is created', async () => {
  const refused = async (column: object) => {
    const answer = await key.post('/management/tables', {
      table_name: 'refused',
      columns: [{ name: 'a', data_type: 'text', ...column }],
    })
    assert.equal(answer.status, 400, answer.text)
    return answer.body.code
  }
  assert.equal(await refused({ data_type: 'text; drop table orders' }), 'invalid_data_type')
  assert.equal(await refused({ data_type: 'oid' }), 'invalid_data_type')
  for (const default_expression of [
    "(select 'x')",
    'pg_sleep(1)',
    'now(); drop table orders',
    "pg_read_file('/etc/passwd')",
    'current_user || 1',
  ]) {
    assert.equal(await refused({ default_expression }), 'invalid_default', default_expression)
  }
  const fetched = await key.post('/gateway/fetch', { table_name: 'refused' })
  assert.equal(fetched.status, 404)
})

test('management requires a bound key with the right, and rejects the admin key', async () => {
  const body = { table_name: 'forbidden', columns: [{ name: 'a', data_type: 'text' }] }
  const ask = async (headers: Record<string, string>) => {
    const answer = await actor(t.url, { 'x-service-client': 'default', ...headers }).post(
      '/management/tables',
      body,
    )
    return [answer.status, answer.body.code]
  }
  const reader = await t.key(['management.read', 'gateway.*'])
  const unbound = await t.key(['*'], { client_name: null })
  assert.deepEqual(await ask({}), [401, 'api_key_required'])
  assert.deepEqual(await ask({ apikey: t.admin.headers.apikey ?? '' }), [401, 'api_key_required'])
  assert.deepEqual(await ask({ apikey: reader.apiKey }), [403, 'insufficient_rights'])
  assert.deepEqual(await ask({ apikey: unbound.apiKey }), [403, 'insufficient_rights'])
  assert.deepEqual(await ask({ apikey: key.apiKey, 'x-service-client': 'logging' }), [
    403,
    'api_key_client_mismatch',
  ])
})

test('capabilities list the backend and the rights that the routes require', async () => {
  const { body } = await key.get('/management/capabilities')
  assert.match(body.data.backend, /^postgresql \d+\.\d+/)
  assert.deepEqual(
    [body.data.retention_mutation_supported, body.data.replication_mutation_supported],
    [false, false],
  )
  assert.deepEqual(body.data.supported_operations, Object.keys(OPERATIONS))
  assert.deepEqual(body.data.required_rights[1], {
    operation: 'create_table',
    required_right: 'management.tables.write',
  })
  assert.deepEqual(body.data.allowed_index_methods, ['btree', 'hash', 'gin', 'gist', 'brin', 'spgist'])
  assert.ok(body.data.allowed_column_data_types.includes('timestamptz'))
})

test('nothing is changed while the audit log cannot be written', async () => {
  const client = new pg.Client({ connectionString: t.loggingUrl })
  await client.connect()
  await client.query('alter table database_audit_log rename to elsewhere')
  const answer = await key.post('/management/tables', {
    table_name: 'unaudited',
    columns: [{ name: 'a', data_type: 'text' }],
  })
  assert.deepEqual([answer.status, answer.body.code], [503, 'audit_unavailable'])
  await client.query('alter table elsewhere rename to database_audit_log')
  await client.end()
  assert.equal((await key.post('/gateway/fetch', { table_name: 'unaudited' })).status, 404)
})

test('reserved names of service and database cannot be created or referenced', async () => {
  const columns = [{ name: 'a', data_type: 'text' }]
  const references = { table: 'service_idempotency', column: 'key' }
  for (const body of [
    { table_name: 'service_idempotency', columns },
    { table_name: 'session', schema_name: 'service', columns },
    { table_name: 'job', schema_name: 'service_jobs', columns },
    { table_name: 'own', schema_name: 'pg_catalog', columns },
    { table_name: 'own', schema_name: 'information_schema', columns },
    { table_name: 'referring', columns: [{ name: 'a', data_type: 'text', references }] },
    {
      table_name: 'referring',
      columns: [{ name: 'a', data_type: 'text', references: { ...references, table: 'service.session' } }],
    },
  ]) {
    const answer = await key.post('/management/tables', body)
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_identifier'], answer.text)
    assert.deepEqual(await audited(body.table_name), [])
  }
  const found = await withClient(t.clientUrl, (client) =>
    client.query(`select from pg_class where relname in ('service_idempotency', 'own', 'referring')`),
  )
  assert.equal(found.rowCount, 0)
})

test('a change whose connection breaks off stays pending in the log, with the reason', async () => {
  const log = createAuditLog(t.loggingUrl, t.service.kernel)
  const change = {
    ...{
      requestId: 'r',
      actorKeyId: key.keyId,
      client: 'default',
      operation: 'drop_table',
      schema: 'public',
    },
    ...{ object: 'doubtful', statement: 'drop table doubtful' },
    objectType: 'table' as const,
  }
  const lost = fail('connection_lost')
  await assert.rejects(
    log.around(change, () => Promise.reject(lost)),
    lost,
  )
  await assert.rejects(
    log.around(change, () => Promise.reject(fail('object_busy'))),
    { code: 'object_busy' },
  )
  const rows = await audited('doubtful')
  assert.deepEqual(
    rows.map(({ status, error_message }: Record<string, string>) => [status, error_message]),
    [
      ['pending', lost.message],
      ['failed', fail('object_busy').message],
    ],
  )
  await log.close()
})
