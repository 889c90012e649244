import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'

const t = await testService({
  config: {
    auth: {
      admin: {
        roles: {
          caretaker: {
            operator: ['keys', 'webhooks', 'routes'],
            gateway: { default: ['orders.*'] },
          },
          lister: { user: ['list'] },
        },
      },
    },
  },
})
const { db, coherence } = t.service.kernel

const FOR_CLIENT = { headers: { 'x-service-client': 'default' } }

const KINDS = {
  'an API key': {
    path: '/admin/api-keys',
    body: () => ({ name: 'made', client_name: 'default', rights: ['orders.read'] }),
    list: 'api_keys',
  },
  'a webhook': {
    path: '/admin/webhooks',
    body: () => ({
      ...{ route_key: 'gateway_insert', table_name: 'orders', url: 'https://hooks.example.com/made' },
    }),
    list: 'webhooks',
  },
  'a public route': {
    path: '/admin/public-routes',
    body: (name: string) => ({
      ...{ route_key: `made-${name}`, client_name: 'default', allowed_ops: ['fetch'], table_name: 'orders' },
    }),
    list: 'public_routes',
  },
} as const

for (const [what, { path, body, list }] of Object.entries(KINDS))
  test(`${what} tells the user by whose session it was made, and stays when the role is gone`, async () => {
    const root = await operatorOf(t, 'admin')
    const made = await byBearer(t, root).post(path, body('a'))
    assert.equal(made.status, 201, made.text)
    const byKey = await t.admin.post(path, body('b'), FOR_CLIENT)
    assert.equal(byKey.status, 201, byKey.text)
    await db.updateTable('user').set({ role: 'user' }).where('id', '=', root.id).execute()
    await coherence.settle()
    assert.equal((await byBearer(t, root).get(path)).status, 403)
    const { data } = (await t.admin.get(path, FOR_CLIENT)).body
    const listed = data[list].map(({ created_by, is_active }: Record<string, unknown>) => [
      created_by,
      is_active,
    ])
    assert.deepEqual(listed.slice(-2), [
      [root.id, true],
      [null, true],
    ])
  })

for (const [what, { path, body, list }] of Object.entries(KINDS))
  test(`${what} names its creator only to sessions that may list users`, async () => {
    const root = await operatorOf(t, 'admin')
    const made = await byBearer(t, root).post(path, body('c'))
    assert.equal(made.status, 201, made.text)
    const seenBy = async (role: string) => {
      const { status, body, text } = await byBearer(t, await operatorOf(t, role)).get(path)
      assert.equal(status, 200, text)
      return body.data[list].at(-1).created_by
    }
    assert.deepEqual([await seenBy('caretaker'), await seenBy('caretaker,lister')], [undefined, root.id])
    const own = await byBearer(t, await operatorOf(t, 'caretaker')).post(path, body('d'))
    assert.equal(own.status, 201, own.text)
    assert.ok(!own.text.includes('created_by'))
  })
