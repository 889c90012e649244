import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'
import { startPostgrestEndpoint } from '#test/postgrest/endpoint.ts'

const database = await testDatabase()
const endpoint = await startPostgrestEndpoint(database.url)
after(() => endpoint.close())
const sql = async (text: string) => (await withClient(database.url, (client) => client.query(text))).rows
await sql(`create table book (id int primary key, title text, is_public boolean, secret text);
  insert into book values (1, 'One', true, 's1'), (2, 'Two', false, 's2')`)
const t = await testService({ config: { clients: { shop: { driver: 'supabase', url: endpoint.url } } } })
const stranger = actor(t.url, {})

const create = (facts: object) =>
  t.admin.post('/admin/public-routes', {
    client_name: 'shop',
    requires_key: false,
    table_name: 'book',
    allowed_ops: ['fetch', 'insert', 'update', 'delete'],
    ...facts,
  })

test('a driver that cannot check a written row refuses such writes, and reads and deletes within the record', async () => {
  const conditions = [{ eq_column: 'is_public', eq_value: true }]
  assert.equal((await create({ route_key: 'books', columns: ['id', 'title'], conditions })).status, 201)
  const call = (op: string, body: object) => stranger.post(`/public/books/${op}`, body)
  const found = await call('fetch', { conditions: [{ operator: 'or', value: 'id.eq.1,id.eq.2' }] })
  assert.deepEqual(found.body.data, [{ id: 1, title: 'One' }])
  assert.equal((await call('fetch', { columns: 'secret' })).body.code, 'unknown_column')
  for (const [op, body] of [
    ['insert', { insert_body: { id: 3, title: 'Three' } }],
    ['update', { set: { title: 'x' }, where: { id: 1 } }],
  ] as const) {
    const refused = await call(op, body)
    assert.deepEqual([refused.status, refused.body.code], [400, 'unsupported_by_driver'], refused.text)
  }
  assert.equal((await call('delete', { where: { id: { gt: 0 } } })).body.affected_rows, 1)
  assert.deepEqual(await sql('select id, title from book'), [{ id: 2, title: 'Two' }])
})

test('the operation query needs a driver that runs SQL as its caller', async () => {
  const refused = await create({ route_key: 'sql', allowed_ops: ['query'], query: 'select 1' })
  assert.deepEqual([refused.status, refused.body.code], [400, 'unsupported_by_driver'], refused.text)
})

test('the operation subscribe needs a driver that tells changes', async () => {
  const refused = await create({ route_key: 'live', allowed_ops: ['subscribe'] })
  assert.deepEqual([refused.status, refused.body.code], [400, 'unsupported_by_driver'], refused.text)
})
