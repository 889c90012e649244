import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testService, type User } from '#test/harness.ts'

const t = await testService()

async function again(user: User) {
  const { body } = await t.anon.post('/api/auth/sign-in/email', { email: user.email, password: PASSWORD })
  return { token: body.token as string, headers: { authorization: `Bearer ${body.token}` } }
}
const works = async (headers: Record<string, string>) =>
  (await t.anon.get('/api/auth/get-session', { headers })).status === 200

test('sessions are listed with handles that are not credentials; only the current one shows its token', async () => {
  const ada = await t.signUp('Ada')
  const phone = await again(ada)
  const { body } = await ada.get('/api/auth/list-sessions')
  assert.equal(body.length, 2)
  const [own, other] = body[0].current ? body : [body[1], body[0]]
  assert.deepEqual([own.current, own.token], [true, ada.token])
  assert.match(other.token, /^sh_/)
  assert.ok(!JSON.stringify(body).includes(phone.token))
  assert.equal(await works({ authorization: `Bearer ${other.token}` }), false)

  const revoked = await ada.post('/api/auth/revoke-session', { token: other.token })
  assert.deepEqual(revoked.body, { status: true, success: true, count: 1 })
  assert.deepEqual([await works(phone.headers), await works(ada.headers)], [false, true])
})

test('a session is revoked by its token or its id; those of other users and unknown ones have no effect', async () => {
  const ada = await t.signUp('Ada')
  const bob = await t.signUp('Bob')
  const byToken = await again(ada)
  const byId = await again(ada)
  const revoke = async (token: string) => (await ada.post('/api/auth/revoke-session', { token })).body.count
  assert.equal(await revoke(byToken.token), 1)
  const { body } = await t.anon.get('/api/auth/get-session', { headers: byId.headers })
  assert.equal(await revoke(body.session.id), 1)
  assert.deepEqual([await works(byToken.headers), await works(byId.headers)], [false, false])

  const bobs = await bob.get('/api/auth/list-sessions')
  for (const token of [bob.token, bobs.body[0].id, `sh_${bobs.body[0].id}`, 'nothing', 'A'.repeat(43)]) {
    assert.equal(await revoke(token), 0)
  }
  assert.equal(await works(bob.headers), true)
})

test('all sessions end, or all but the current one', async () => {
  const ada = await t.signUp('Ada')
  const others = [await again(ada), await again(ada)]
  assert.equal((await ada.post('/api/auth/revoke-other-sessions')).body.count, 2)
  assert.deepEqual(await Promise.all(others.map(({ headers }) => works(headers))), [false, false])
  assert.equal(await works(ada.headers), true)
  await again(ada)
  assert.deepEqual((await ada.post('/api/auth/revoke-sessions')).body, {
    status: true,
    success: true,
    count: 2,
  })
  assert.equal(await works(ada.headers), false)
})
