import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { FOR_CLIENT, webhookRequests } from '#test/webhooks.ts'

const t = await testService()
const { kernel } = t.service
const key = await t.key(['*'])
const { make, made, at } = webhookRequests(t)

before(() =>
  withClient(t.clientUrl, (client) => client.query('create table track (id bigint primary key, title text)')),
)

const types = async () =>
  (await kernel.db.selectFrom('webhookEvent').select('routeKey').execute()).map(({ routeKey }) => routeKey)
const insert = (id: number) =>
  key.send('PUT', '/gateway/insert', { body: { table_name: 'track', insert_body: { id } } })

test('a webhook of several route keys gets each of their events once, and no other', async () => {
  const id = await made({ route_keys: ['gateway_insert', 'gateway.*', 'schema_table_created'] })
  const record = async () => (await t.admin.get(at(id), FOR_CLIENT)).body.data
  assert.deepEqual((await record()).route_key, null)
  await insert(1)
  assert.deepEqual(await types(), ['gateway_insert'])
  const deliveries = await kernel.db.selectFrom('webhookDelivery').select('webhookId').execute()
  assert.deepEqual(deliveries, [{ webhookId: id }])
  const change = (body: object) => t.admin.send('PATCH', at(id), { body, ...FOR_CLIENT })
  assert.equal((await change({ route_keys: ['gateway_update', 'gateway_delete'] })).status, 200)
  await insert(2)
  assert.deepEqual(await types(), ['gateway_insert'])
  await key.post('/gateway/delete', { table_name: 'track', conditions: [{ column: 'id', value: 2 }] })
  assert.deepEqual((await types()).toSorted(), ['gateway_delete', 'gateway_insert'])
  assert.equal((await change({ route_key: 'gateway_update' })).status, 200)
  const { route_key, route_keys } = await record()
  assert.deepEqual([route_key, route_keys], ['gateway_update', ['gateway_update']])
})

test('route keys that are missing, unknown, contradictory or of users and clients at once are refused', async () => {
  const several = ['gateway_insert', 'gateway_update']
  const refusal = async (body: object) => {
    const { status, body: answer } = await make(body)
    return [status, answer.code, answer.data?.details?.field]
  }
  assert.deepEqual(await refusal({}), [400, 'invalid_webhook', 'route_key'])
  assert.equal((await refusal({ route_keys: [] }))[1], 'validation_error')
  for (const body of [
    { route_key: 'gateway_insert', route_keys: several },
    { route_keys: [...several, 'nothing'] },
    { route_keys: [...several, 'auth.*'] },
  ])
    assert.deepEqual(await refusal(body), [400, 'invalid_webhook', 'route_keys'])
})
