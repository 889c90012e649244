import assert from 'node:assert/strict'
import { actor, type TestService, type User } from './harness.ts'

/** Users without an address, who have this session alone. */
export async function signInAnonymously(t: TestService): Promise<User> {
  const { status, body, text } = await t.anon.post('/api/auth/sign-in/anonymous')
  assert.equal(status, 200, text)
  const { token, user } = body
  return { ...actor(t.url, { authorization: `Bearer ${token}` }), token, id: user.id, email: user.email }
}
