import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets, newSecret } from '#kernel/secrets.ts'
import { testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { addEvents, FOR_CLIENT, startReceiver, verified, webhookRequests } from '#test/webhooks.ts'
import { dropSealed } from './lost-secret.ts'

const t = await testService({ config: { outbound: TO_LOOPBACK } })
const secrets = createSecrets(newSecret(secureRandom), secureRandom)
/** The same installation with a secret that opens nothing of before. */
const later = await testService({ config: { outbound: TO_LOOPBACK }, controlUrl: t.controlUrl, secrets })
const { made, at } = webhookRequests(t)
const endpoint = await startReceiver()
const id = await made({
  route_key: 'gateway_insert',
  url: `${endpoint.url}/hook`,
  headers: { authorization: 'Bearer former' },
})

test('a webhook whose secret was sealed under another SERVICE_SECRET signs again when both are given anew', async () => {
  const { admin } = later
  const unreadable = await admin.post(at(id, '/test'), {}, FOR_CLIENT)
  assert.deepEqual([unreadable.status, unreadable.body.code], [409, 'webhook_unreadable'])
  const { secret } = (await admin.post(at(id, '/rotate-secret'), {}, FOR_CLIENT)).body.data
  const headers = { authorization: 'Bearer new' }
  assert.equal((await admin.send('PATCH', at(id), { body: { headers }, ...FOR_CLIENT })).status, 200)
  const tested = await admin.post(at(id, '/test'), {}, FOR_CLIENT)
  assert.deepEqual([tested.status, tested.body.data?.status], [200, 'succeeded'], tested.text)
  const [event] = endpoint.received.splice(0)
  assert.ok(event)
  verified(secret, event)
  assert.equal(event.headers.authorization, 'Bearer new')
})

test('a lost secret takes out of use all that names a dropped client, and webhooks that cannot sign', async () => {
  const body = { client_name: 'shop', url: t.clientUrl }
  assert.equal((await t.admin.post('/admin/clients', body)).status, 201)
  const { apiKey } = await t.key(['*'], { client_name: 'shop' })
  const route = { route_key: 'shop', client_name: 'shop', table_name: 'x', allowed_ops: ['fetch'] }
  assert.equal((await t.admin.post('/admin/public-routes', { ...route, requires_key: false })).status, 201)
  const ofShop = await made({ route_key: 'gateway_insert', client_name: 'shop' })
  const ofDefault = await made({ route_key: 'gateway_insert', url: `${endpoint.url}/hook` })
  await addEvents(t.service.kernel, ofDefault)

  const lines = await dropSealed(t.controlUrl, secrets)
  // The command runs without a service, so it does not wait for the caches of one.
  await later.service.kernel.coherence.settle()
  const inactive = [ofShop, ofDefault].map(
    (webhook) => `set webhook ${webhook} inactive: rotate its secret, set its headers again and activate it`,
  )
  assert.deepEqual(lines, ['dropped client shop: register it again', ...inactive])
  const { admin, anon } = later
  assert.equal((await admin.post('/admin/clients', body)).status, 201)
  const called = await anon.post('/public/shop/fetch', {})
  assert.deepEqual([called.status, called.body.code], [403, 'route_inactive'])
  const keyed = await anon.post(
    '/gateway/fetch',
    { table_name: 'x' },
    { headers: { apikey: apiKey, 'x-service-client': 'shop' } },
  )
  assert.equal(keyed.status, 401)
  for (const webhook of [ofShop, ofDefault]) {
    const { is_active, disabled_reason } = (await admin.get(at(webhook), FOR_CLIENT)).body.data
    assert.equal(is_active, false)
    assert.match(disabled_reason, /SERVICE_SECRET that is lost/)
  }
  assert.equal((await admin.get(at(id), FOR_CLIENT)).body.data.is_active, true)

  // Its deliveries have waited.
  assert.equal(await later.service.deliveries.drain(), 0)
  const { secret } = (await admin.post(at(ofDefault, '/rotate-secret'), {}, FOR_CLIENT)).body.data
  await admin.send('PATCH', at(ofDefault), { body: { is_active: true }, ...FOR_CLIENT })
  await later.service.deliveries.drain()
  const [event] = endpoint.received
  assert.ok(event && endpoint.received.length === 1)
  verified(secret, event)
})
