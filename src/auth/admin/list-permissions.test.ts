import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'

const t = await testService({
  config: {
    auth: {
      admin: {
        roles: {
          support: { user: ['list', 'get'], session: ['list'] },
          keeper: { operator: ['keys', 'audit'], gateway: { default: ['orders.*'], '*': ['*.read'] } },
        },
      },
    },
  },
})

const permissionsOf = async (role: string) => {
  const person = await createPerson(t, { role })
  const { status, body, text } = await person.get('/api/auth/admin/list-permissions')
  assert.equal(status, 200, text)
  const { user, ...allowed } = body
  assert.deepEqual(user, { id: person.id, name: 'Ada', email: person.email })
  return allowed
}

test('a caller reads what their roles allow together, and no more', async () => {
  assert.deepEqual(await permissionsOf('user'), { permissions: {}, gateway: {} })
  assert.deepEqual(await permissionsOf('support'), {
    permissions: { user: ['list', 'get'], session: ['list'] },
    gateway: {},
  })
  assert.deepEqual(await permissionsOf('support,keeper'), {
    permissions: { user: ['list', 'get'], session: ['list'], operator: ['keys', 'audit'], audit: ['list'] },
    gateway: { default: ['orders.*'], '*': ['*.read'] },
  })
  const admin = await permissionsOf('admin')
  assert.ok(admin.permissions.user.includes('set-role'))
  assert.ok(admin.permissions.operator.includes('settings'))
  assert.ok(admin.gateway['*'].includes('*'))
})

test('what is listed is what the routes ask for', async () => {
  const person = await createPerson(t, { role: 'support' })
  const { permissions } = (await person.get('/api/auth/admin/list-permissions')).body
  for (const [resource, actions] of Object.entries(permissions))
    for (const action of actions as string[]) {
      const asked = { permissions: { [resource]: [action] } }
      assert.equal((await person.post('/api/auth/admin/has-permission', asked)).body.success, true)
    }
})

test('without a session nothing is listed', async () => {
  assert.equal((await t.anon.get('/api/auth/admin/list-permissions')).status, 401)
})
