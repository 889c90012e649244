import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'

const clients = { project: { driver: 'supabase' as const, url: 'http://:key@127.0.0.1:1' } }
const t = await testService({ config: { clients } })
const key = await t.key(['management.*', 'gateway.*'])
const sql = (text: string) => withClient(t.clientUrl, async (client) => (await client.query(text)).rows)
await sql(
  'create table orders (id int primary key, note text); create table keyless (id int); create view seen as select 1 as id',
)
const path = (table: string) => `/management/tables/${table}/realtime`

const audited = async () =>
  withClient(t.loggingUrl, async (client) => {
    const { rows } = await client.query(
      `select object_name, status from database_audit_log where operation = 'realtime' order by id`,
    )
    return rows.map(({ object_name, status }) => `${object_name} ${status}`)
  })

test('a table becomes live, tells so, and ends', async () => {
  const state = async () => (await key.get(path('orders'))).body.data
  assert.deepEqual(await state(), { schema_name: 'public', table_name: 'orders', enabled: false })
  const on = await key.send('PUT', path('orders'), { body: { enabled: true } })
  assert.deepEqual(
    [on.status, on.body.data],
    [200, { schema_name: 'public', table_name: 'orders', enabled: true }],
  )
  assert.deepEqual(await state(), { schema_name: 'public', table_name: 'orders', enabled: true })
  assert.equal(
    (await key.send('PUT', path('orders'), { body: { enabled: true, schema_name: 'public' } })).status,
    200,
  )
  assert.equal(
    (await key.post('/gateway/insert', { table_name: 'orders', insert_body: { id: 1 } })).status,
    200,
  )
  assert.deepEqual(
    (await sql('select op, keys from service_changes')).map(({ op, keys }) => [op, keys]),
    [['i', ['1']]],
  )
  const off = await key.send('PUT', path('orders'), { body: { enabled: false } })
  assert.deepEqual([off.status, off.body.data.enabled], [200, false])
  assert.deepEqual(await sql(`select relname from pg_class where relname like 'service_changes%'`), [])
  assert.equal((await state()).enabled, false)
  assert.deepEqual(await audited(), ['orders succeeded', 'orders succeeded', 'orders succeeded'])
})

test('only a key that may change tables makes one live, and only one who may look sees it', async () => {
  const reader = await t.key(['management.read', 'gateway.*'])
  assert.equal((await reader.send('PUT', path('orders'), { body: { enabled: true } })).status, 403)
  assert.equal((await reader.get(path('orders'))).status, 200)
  const writer = await t.key(['gateway.*'])
  assert.equal((await writer.get(path('orders'))).status, 403)
  assert.equal((await actor(t.url, {}).send('PUT', path('orders'), { body: { enabled: true } })).status, 401)
  assert.deepEqual(await sql(`select relname from pg_class where relname like 'service_changes%'`), [])
})

test('tables that cannot be live, and drivers without live rows, answer why', async () => {
  const refusal = async (table: string, body: object = { enabled: true }) => {
    const answer = await key.send('PUT', path(table), { body })
    return [answer.status, answer.body.code]
  }
  assert.deepEqual(await refusal('keyless'), [400, 'no_primary_key'])
  assert.deepEqual(await refusal('seen'), [400, 'no_primary_key'])
  assert.deepEqual(await refusal('missing'), [404, 'table_not_found'])
  assert.deepEqual(await refusal('orders', { enabled: true, schema_name: 'other' }), [404, 'table_not_found'])
  assert.deepEqual(await refusal('orders', {}), [400, 'validation_error'])
  assert.deepEqual(await refusal('service_changes'), [400, 'invalid_identifier'])
  const { apiKey } = await t.key(['management.*'], { client_name: 'project' })
  const project = actor(t.url, { apikey: apiKey, 'x-service-client': 'project' })
  for (const answer of [
    await project.send('PUT', path('orders'), { body: { enabled: true } }),
    await project.get(path('orders')),
  ])
    assert.deepEqual([answer.status, answer.body.code], [400, 'unsupported_by_driver'], answer.text)
})

test('tables of the feed are no tables of the client', async () => {
  await key.send('PUT', path('orders'), { body: { enabled: true } })
  for (const table_name of ['service_changes', 'service_changes_state', 'service_changes_mark']) {
    assert.equal((await key.post('/gateway/fetch', { table_name })).status, 404)
    assert.equal((await key.send('DELETE', `/management/tables/${table_name}`, { body: {} })).status, 400)
  }
  assert.doesNotMatch((await key.get('/schema/tables')).text, /service_changes/)
  assert.doesNotMatch((await key.get('/schema/indexes')).text, /service_changes/)
  assert.doesNotMatch((await key.get('/management/functions')).text, /service_changes/)
})

test('old changes are deleted where a client has live tables, and a client without is forgotten', async () => {
  const prune = t.service.recurring.find(({ name }) => name === 'prune-changes')
  const known = async () =>
    (await t.service.kernel.db.selectFrom('realtimeClient').select('clientName').execute()).map(
      (row) => row.clientName,
    )
  await key.send('PUT', path('orders'), { body: { enabled: true } })
  await sql(`insert into orders values (50)`)
  await prune?.run()
  await sql(`update service_changes_mark set at = at - interval '2 days'`)
  await prune?.run()
  assert.deepEqual(await sql('select from service_changes'), [])
  await key.send('PUT', path('orders'), { body: { enabled: false } })
  await prune?.run()
  assert.deepEqual(await known(), ['default'])
  t.advance(2 * 86_400_000)
  await prune?.run()
  assert.deepEqual(await known(), [])
})
