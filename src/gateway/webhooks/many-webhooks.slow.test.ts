import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { addWebhook } from '#test/webhooks.ts'

const t = await testService()
const WEBHOOKS = 3_500
const INSERTS = 30

test('no event is lost when thousands of webhooks match the operations of many callers', async () => {
  const { kernel } = t.service
  await withClient(t.clientUrl, (client) => client.query('create table note (id int primary key)'))
  const { id } = await addWebhook(kernel, { url: 'https://hooks.example.com/in' })
  await withClient(t.controlUrl, (client) =>
    client.query(
      `insert into service.webhook (id, client_name, route_keys, url, sealed_secret, timeout_ms, created_at, updated_at)
       select gen_random_uuid(), client_name, route_keys, url, sealed_secret, timeout_ms, created_at, updated_at
       from service.webhook, generate_series(2, $2::int) where id = $1`,
      [id, WEBHOOKS],
    ),
  )
  await kernel.coherence.settle()
  const key = await t.key(['*'])
  const inserted = await Promise.all(
    Array.from({ length: INSERTS }, (_, number) =>
      key.post('/gateway/insert', { table_name: 'note', insert_body: { id: number } }),
    ),
  )
  const ends = inserted.map(({ status, headers }) => `${status} ${headers.get('x-service-events')}`)
  assert.deepEqual(new Set(ends), new Set(['200 null']))
  const { rows } = await withClient(t.controlUrl, (client) =>
    client.query('select count(*)::int as count from service.webhook_delivery'),
  )
  assert.equal(rows[0].count, WEBHOOKS * INSERTS)
})
