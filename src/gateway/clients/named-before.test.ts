import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, testService } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'

const auth = {
  admin: {
    roles: { clients: { operator: ['clients'] } },
  },
} as const
const NAMES = ['by_key', 'by_pipelines', 'by_route', 'by_webhook', 'by_nothing'] as const

/** Clients of the configuration, which a later start does not have any more. */
async function formerNames() {
  const first = await testService()
  const clients = Object.fromEntries(NAMES.map((name) => [name, { url: first.clientUrl }]))
  const before = await testService({ controlUrl: first.controlUrl, config: { clients } })
  await before.key(['gateway.read'], { client_name: 'by_key' })
  await before.key(['gateway.read', 'pipelines.run'], { client_overrides: ['by_pipelines'] })
  const route = { table_name: 'orders', allowed_ops: ['insert'], requires_key: false }
  const made = [
    await before.admin.post('/admin/public-routes', {
      ...route,
      route_key: 'letters',
      client_name: 'by_route',
    }),
    await before.admin.post(
      '/admin/webhooks',
      { route_key: 'gateway_insert', url: 'https://example.com/hook', client_name: 'by_webhook' },
      { headers: { 'x-service-client': 'by_webhook' } },
    ),
  ]
  for (const { status, text } of made) assert.equal(status, 201, text)
  return testService({ controlUrl: first.controlUrl, config: { auth } })
}
const t = await formerNames()
const register = (who: Actor, client_name: string) =>
  who.post('/admin/clients', { client_name, url: t.clientUrl })

test('a session gives a name to which keys, routes or webhooks lead an address only with every right on it', async () => {
  const me = byBearer(t, await operatorOf(t, 'clients'))
  for (const name of NAMES.slice(0, -1)) {
    const { status, body, text } = await register(me, name)
    assert.deepEqual([status, body?.code], [403, 'insufficient_rights'], `${name}: ${text}`)
  }
  assert.equal((await register(me, 'by_nothing')).status, 201, 'nothing leads there')
  const root = byBearer(t, await operatorOf(t, 'admin'))
  for (const who of [root, t.admin])
    assert.equal((await register(who, who === root ? 'by_key' : 'by_route')).status, 201)
})
