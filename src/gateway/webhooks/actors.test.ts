import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { documentedPayloads } from '#test/openapi.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'
import { addWebhook } from '#test/webhooks.ts'

const { t, admin, adas, users, sql, createTable, secured, insert, keyWith } = await createSecuredTables()
const { kernel } = t.service
await createTable('note', [TEXT, USER])
await secured('note', [{ preset: 'owner' }])
await sql(`create function one() returns int language sql as 'select 1'; grant execute on function one() to public;
  create table copy (id bigint primary key, text text, user_id uuid)`)
await addWebhook(kernel, { url: 'https://hooks.example.com/in', routeKey: '*', clientName: 'app' })
await addWebhook(kernel, { url: 'https://hooks.example.com/in', routeKey: 'auth.*', clientName: null })
const isDocumented = documentedPayloads((await t.anon.get('/openapi.json')).body)

beforeEach(() => kernel.db.deleteFrom('webhookEvent').execute())

/** Type and actor of the events since the last call. */
async function actors(): Promise<[string, string, string | null][]> {
  const events = await kernel.db.deleteFrom('webhookEvent').returning('body').execute()
  const payloads = events.map(({ body }) => JSON.parse(body))
  for (const payload of payloads) isDocumented(payload)
  return payloads.map(({ type, data: { actor } }) => [type, actor.kind, actor.id])
}

const asAdminKey = { headers: { 'x-service-client': 'app' } }

test('the actor of an operation is the user of its session, or else the key', async () => {
  await insert(adas, 'note', { text: 'mine' })
  assert.deepEqual(await actors(), [['gateway_insert', 'user', users.ada.id]])
  await admin.post('/gateway/fetch', { table_name: 'note' })
  const [[type, kind, keyId] = []] = await actors()
  assert.deepEqual([type, kind], ['gateway_fetch', 'api_key'])
  assert.match(keyId ?? '', /^[0-9a-f-]{36}$/)
  await t.admin.post('/gateway/fetch', { table_name: 'note' }, asAdminKey)
  assert.deepEqual(await actors(), [['gateway_fetch', 'admin_key', null]])
  const operations = [
    { id: 'a', kind: 'insert', payload: { table_name: 'note', insert_body: { text: 'b' } } },
  ]
  await adas.post('/gateway/transaction', { operations })
  assert.deepEqual(await actors(), [['gateway_insert', 'user', users.ada.id]])
  await adas.get('/rpc/one')
  assert.deepEqual(await actors(), [['gateway_rpc', 'user', users.ada.id]])
  await adas.send('POST', '/gateway/import?table_name=note', {
    raw: 'text\nc\n',
    headers: { 'content-type': 'text/csv' },
  })
  assert.deepEqual(await actors(), [['gateway_insert', 'user', users.ada.id]])
})

test('SQL, pipelines and changes of the structure are of the key', async () => {
  const kinds = async () => (await actors()).map(([type, kind, id]) => [type, kind, id !== null])
  await t.admin.post('/gateway/query', { query: 'select 1' }, asAdminKey)
  assert.deepEqual(await kinds(), [['gateway_query', 'admin_key', false]])
  const runner = await keyWith(['pipelines.run', 'gateway.*', 'gateway.bypass_row_level_security'])
  await runner.post('/pipelines', { source: { table_name: 'note' }, sink: { table_name: 'copy' } })
  assert.deepEqual(await kinds(), [['pipeline_completed', 'api_key', true]])
  await admin.post('/management/tables', { table_name: 'other', columns: [TEXT] })
  assert.deepEqual(await kinds(), [['schema_table_created', 'api_key', true]])
})

test('an admin who acts as a user is the actor, and who calls a public route without session and key is anonymous', async () => {
  const boss = await t.signUp('Boss')
  await kernel.db.updateTable('user').set({ role: 'admin' }).where('id', '=', boss.id).execute()
  await kernel.coherence.settle()
  const session = await impersonated(t, boss, users.ada, { parentId: await sessionIdOf(boss) })
  const route = {
    route_key: 'notes',
    client_name: 'app',
    table_name: 'note',
    allowed_ops: ['fetch'],
    requires_key: false,
    run_as: 'owner',
  }
  assert.equal((await t.admin.post('/admin/public-routes', route)).status, 201)
  await actors()
  const read = { table_name: 'note' }
  await admin.post('/gateway/fetch', read, { headers: { authorization: `Bearer ${session.token}` } })
  assert.deepEqual(await actors(), [['gateway_fetch', 'user', boss.id]])
  await t.anon.post('/public/notes/fetch', {})
  assert.deepEqual(await actors(), [['gateway_fetch', 'anonymous', null]])
})

test('a user who signs up is the cause of that', async () => {
  const { id } = await t.signUp('Cleo')
  assert.deepEqual((await actors()).toSorted(), [
    ['auth_user_created', 'user', id],
    ['auth_user_signed_in', 'user', id],
  ])
})

test('a delete has the rows as they were, and no other operation has', async () => {
  const all = { table_name: 'note', conditions: [{ column: 'text', value: 'mine' }], columns: ['text'] }
  await adas.post('/gateway/update', { ...all, set: { text: 'mine' } })
  await adas.post('/gateway/delete', { ...all, head: true })
  await insert(adas, 'note', { text: 'mine' }, { columns: ['text'] })
  await adas.post('/gateway/delete', all)
  await adas.post('/gateway/fetch', all)
  await adas.get('/rpc/one')
  await t.admin.post('/gateway/query', { query: 'select 1 as one' }, asAdminKey)
  const bodies = await kernel.db.selectFrom('webhookEvent').select('body').orderBy('id').execute()
  const rows = [{ text: 'mine' }]
  assert.deepEqual(
    bodies.map(({ body }) => {
      const { type, data } = JSON.parse(body)
      isDocumented(JSON.parse(body))
      return [type, data.rows, data.old_rows]
    }),
    [
      ['gateway_update', rows, undefined],
      ['gateway_delete', undefined, undefined],
      ['gateway_insert', rows, undefined],
      ['gateway_delete', rows, rows],
      ['gateway_fetch', [], undefined],
      ['gateway_rpc', [{ one: 1 }], undefined],
      ['gateway_query', [{ one: 1 }], undefined],
    ],
  )
})
