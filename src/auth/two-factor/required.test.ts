import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { setRoleByOperator } from '../admin/operator.ts'

const t = await testService({ config: { auth: { two_factor: { required_for: ['admin'] } } } })
const { kernel } = t.service

test('a session that lacks the required second factor opens only what leads to one, from the moment of the new role', async () => {
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get('/api/auth/list-sessions')).status, 200)
  await setRoleByOperator(kernel, ada.id, 'admin')
  for (const [method, path] of [
    ['GET', '/api/auth/list-sessions'],
    ['POST', '/api/auth/update-user'],
    ['POST', '/api/auth/revoke-sessions'],
  ] as const) {
    const refused = await ada.send(method, path, { ...(method === 'POST' && { body: { name: 'x' } }) })
    assert.deepEqual([refused.status, refused.body.code], [403, 'TWO_FACTOR_REQUIRED'], path)
  }
  assert.equal((await ada.get('/api/auth/get-session')).body.user.role, 'admin')
  assert.equal((await ada.post('/api/auth/set-password', { newPassword: 'another password' })).status, 400)
  assert.equal((await ada.post('/api/auth/sign-out')).status, 200)
})

test('a session by a passkey with user verification satisfies the requirement', async () => {
  const ada = await t.signUp('Ada')
  await setRoleByOperator(kernel, ada.id, 'admin')
  await kernel.db.updateTable('session').set({ userVerified: true }).where('userId', '=', ada.id).execute()
  await kernel.coherence.settle()
  assert.equal((await ada.get('/api/auth/list-sessions')).status, 200)
})
