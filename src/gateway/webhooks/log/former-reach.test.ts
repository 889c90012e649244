import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Actor, type Answer, testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { byBearer, operatorOf } from '#test/operators.ts'
import { FOR_CLIENT, startReceiver } from '#test/webhooks.ts'

const roles = { blind: { operator: ['webhooks' as const], gateway: { default: ['orders.read'] } } }
const t = await testService({ config: { outbound: TO_LOOPBACK, auth: { admin: { roles } } } })
await withClient(t.clientUrl, (client) =>
  client.query(`create table customers (id int primary key, secret text);
    create table orders (id int primary key, customer_id int references customers);
    insert into customers values (1, 'hidden'); insert into orders values (1, 1)`),
)
const key = await t.key(['*'])
const { deliveries: workers } = t.service
const [blind, admin] = [byBearer(t, await operatorOf(t, 'blind')), byBearer(t, await operatorOf(t, 'admin'))]

function assertRefused({ status, body, text }: Answer): void {
  assert.deepEqual([status, body?.code], [403, 'insufficient_rights'], text)
}

type Answering = (response: ServerResponse) => void
const ECHOES: Answering = (response) => response.end('what I was sent')
const FAILS: Answering = (response) => response.writeHead(500).end()

/** A webhook of all tables that has had an event, and is one of `orders` from then on. */
async function narrowed(fetched: object, answering: Answering) {
  const { url } = await startReceiver(answering)
  const made = await t.admin.post('/admin/webhooks', { route_key: 'gateway_fetch', url }, FOR_CLIENT)
  const path = `/admin/webhooks/${made.body.data.id}`
  assert.equal((await key.post('/gateway/fetch', fetched)).status, 200)
  await workers.drain()
  const change = { body: { table_name: 'orders' }, ...FOR_CLIENT }
  assert.equal((await t.admin.send('PATCH', path, change)).status, 200)
  const { body } = await t.admin.get(`${path}/deliveries`, FOR_CLIENT)
  const [{ id: delivery }] = body.data.deliveries
  return { path, retry: (who: Actor) => who.post(`${path}/deliveries/${delivery}/retry`, undefined) }
}
const elsewhere = async () => ({ body: { url: (await startReceiver()).url, headers: null } })
const answersIn = async (who: Actor, path: string): Promise<readonly (string | null)[]> => {
  const { body } = await who.get(`${path}/deliveries`)
  return body.data.deliveries.map((one: { response_body: string | null }) => one.response_body)
}

const FETCHED = {
  'of another table': { table_name: 'customers' },
  'with rows of another table': { table_name: 'orders', columns: 'id,customers(secret)' },
}

for (const [which, fetched] of Object.entries(FETCHED)) {
  test(`an event ${which}, from before its webhook was one of a table, is repeated by who has every right`, async () => {
    const { path, retry } = await narrowed(fetched, ECHOES)
    assertRefused(await retry(blind))
    assert.equal(await workers.drain(), 0)
    assert.deepEqual(await answersIn(blind, path), [null])
    assert.equal((await blind.post(`${path}/test`, undefined)).status, 200, 'it is one of orders now')

    assert.deepEqual((await answersIn(admin, path)).at(-1), 'what I was sent')
    assert.equal((await retry(admin)).status, 200)
    assert.equal(await workers.drain(), 1)
  })

  test(`an event ${which} is not led elsewhere while it waits`, async () => {
    const { path } = await narrowed(fetched, FAILS)
    assertRefused(await blind.send('PATCH', path, await elsewhere()))
    const named = { body: { description: 'of orders' } }
    assert.equal((await blind.send('PATCH', path, named)).status, 200, 'it stays where it is')
    assert.equal((await admin.send('PATCH', path, await elsewhere())).status, 200)
  })
}

test('an event from after the change is repeated, seen and led elsewhere by who reads the table', async () => {
  const { path } = await narrowed(FETCHED['of another table'], ECHOES)
  t.advance(60_000)
  assert.equal((await key.post('/gateway/fetch', { table_name: 'orders' })).status, 200)
  await workers.drain()
  assert.deepEqual(await answersIn(blind, path), ['what I was sent', null])
  const [latest] = (await blind.get(`${path}/deliveries?limit=1`)).body.data.deliveries
  assert.equal((await blind.send('PATCH', path, await elsewhere())).status, 200, 'nothing of before waits')
  assert.equal((await blind.post(`${path}/deliveries/${latest.id}/retry`, undefined)).status, 200)
})
