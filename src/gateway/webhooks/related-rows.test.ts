import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { byBearer, operatorOf } from '#test/operators.ts'
import { startReceiver } from '#test/webhooks.ts'

const watcher = { operator: ['webhooks'], gateway: { default: ['orders.read'] } }
const t = await testService({
  config: { outbound: TO_LOOPBACK, auth: { admin: { roles: { watcher } } } },
})
await withClient(t.clientUrl, (client) =>
  client.query(`create table customers (id int primary key, secret text);
    create table orders (id int primary key, customer_id int references customers, parent_id int references orders);
    insert into customers values (1, 'hidden'); insert into orders values (1, 1, null)`),
)
const key = await t.key(['*'])
const admin = { headers: { 'x-service-client': 'default' } }
const route_keys = ['gateway_fetch', 'gateway_insert', 'gateway_update', 'gateway_delete']

test('a webhook of one table gets no rows of others, which the columns of a caller may name', async () => {
  const [limited, whole] = [await startReceiver(), await startReceiver()]
  const me = byBearer(t, await operatorOf(t, 'watcher'))
  const own = await me.post('/admin/webhooks', { route_keys, url: limited.url, table_name: 'orders' })
  assert.equal(own.status, 201, own.text)
  const every = await t.admin.post('/admin/webhooks', { route_keys, url: whole.url }, admin)
  assert.equal(every.status, 201, every.text)

  const table_name = 'orders'
  const columns = 'id,customers(secret)'
  const conditions = [{ eq_column: 'id', eq_value: 2 }]
  const insert_body = { id: 2, customer_id: 1 }
  const answers = [
    await key.post('/gateway/fetch', { table_name, columns }),
    await key.send('PUT', '/gateway/insert', { body: { table_name, columns, insert_body } }),
    await key.post('/gateway/update', { table_name, columns, conditions, set: { parent_id: 1 } }),
    await key.send('DELETE', '/gateway/delete', { body: { table_name, columns, conditions } }),
    await key.post('/gateway/fetch', { table_name, columns: 'id,parent_id(id)' }),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
  await t.service.deliveries.drain()
  // By their ids, which are in order: several are delivered at once.
  const dataOf = ({ received }: typeof whole) =>
    received.toSorted((one, other) => (one.id < other.id ? -1 : 1)).map(({ body }) => JSON.parse(body).data)
  assert.deepEqual(
    dataOf(whole).map(({ rows, rows_omitted }) => [JSON.stringify(rows).includes('hidden'), rows_omitted]),
    [...Array.from({ length: 4 }, () => [true, undefined]), [false, undefined]],
  )
  assert.doesNotMatch(JSON.stringify(dataOf(limited)), /hidden/)
  assert.deepEqual(
    dataOf(limited).map(({ rows, rows_omitted }) => [rows, rows_omitted]),
    [...Array.from({ length: 4 }, () => [undefined, true]), [[{ id: 1, parent_id: null }], undefined]],
  )
})
