import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testService, type User } from '#test/harness.ts'
import { whileArriving } from '#test/slow-body.ts'
import { setRoleByOperator } from '../admin/operator.ts'

const t = await testService({
  config: { session: { max_age: 9 * 86_400_000 }, auth: { passkey: { rp_id: 'localhost' } } },
})
const { kernel } = t.service
const DAY = 86_400_000

/** Access and rate limits are checked before the body arrives. */
const judging = { next: () => {} }
const { limits } = kernel
Object.assign(kernel, {
  limits: {
    ...limits,
    consume: async (...asked: Parameters<typeof limits.consume>) => {
      await limits.consume(...asked)
      judging.next()
    },
  },
})

/** The answer to a request whose body is sent after `happen`. */
async function sendLate(
  user: User,
  path: string,
  body: object | undefined,
  happen: () => Promise<unknown>,
): Promise<string> {
  const { promise: judged, resolve } = Promise.withResolvers<void>()
  judging.next = resolve
  const ask = { path: `/api/auth/${path}`, headers: user.headers, body }
  return whileArriving(t.url, ask, happen, () => judged)
}
const turn = async (milliseconds: number) => t.advance(milliseconds)

test('a session that expires while the body arrives does not act', async () => {
  const ada = await t.signUp('Ada')
  const answer = await sendLate(ada, 'update-user', { name: 'Late' }, () => turn(7 * DAY + 1_000))
  assert.match(answer, /^HTTP\/1.1 401 .*UNAUTHORIZED/s)
  await turn(-7 * DAY - 1_000)
  assert.equal((await ada.get('/api/auth/get-session')).body.user.name, 'Ada')
})

test('an admin who loses the role while the body arrives is not told the sessions of others', async () => {
  const [root, ada] = [await t.signUp('Root'), await t.signUp('Ada')]
  await setRoleByOperator(kernel, root.id, 'admin')
  const lose = () => setRoleByOperator(kernel, root.id, 'user')
  await setRoleByOperator(kernel, ada.id, 'admin')
  const answer = await sendLate(root, 'admin/list-user-sessions', { userId: ada.id }, lose)
  assert.match(answer, /^HTTP\/1.1 403 .*YOU_ARE_NOT_ALLOWED_TO_LIST_USERS_SESSIONS/s)
})

test('a session that reaches session.max_age while the body arrives does not act', async () => {
  const ada = await t.signUp('Ada')
  const expiresAt = new Date(kernel.now().getTime() + 30 * DAY)
  await kernel.db.updateTable('session').set({ expiresAt }).where('userId', '=', ada.id).execute()
  const answer = await sendLate(ada, 'update-user', { name: 'Late' }, () => turn(9 * DAY + 1_000))
  assert.match(answer, /^HTTP\/1.1 401 .*UNAUTHORIZED/s)
  await turn(-9 * DAY - 1_000)
  assert.equal((await ada.get('/api/auth/get-session')).body.user.name, 'Ada')
})

test('a session that stops being fresh while the body arrives does not do what needs a fresh one', async () => {
  const ada = await t.signUp('Ada')
  const later = () => turn(DAY + 1_000)
  const unlink = await sendLate(ada, 'unlink-account', { providerId: 'credential' }, later)
  assert.match(unlink, /^HTTP\/1.1 403 .*SESSION_NOT_FRESH/s)
  await turn(-DAY - 1_000)
  const set = await sendLate(ada, 'set-password', { newPassword: 'another horse battery' }, later)
  assert.match(set, /^HTTP\/1.1 403 .*SESSION_NOT_FRESH/s)
  await turn(-DAY - 1_000)
})

test('a session acts again after a ban has ended, and not when a ban begins while the body arrives', async () => {
  const ada = await t.signUp('Ada')
  const ban = (banned: boolean, banExpires: Date | null) =>
    kernel.db.updateTable('user').set({ banned, banExpires }).where('id', '=', ada.id).execute()
  await ban(true, new Date(Date.now() - 1_000))
  assert.equal((await ada.post('/api/auth/update-user', { name: 'Back' })).status, 200)
  const answer = await sendLate(ada, 'update-user', { name: 'Late' }, () => ban(true, null))
  assert.match(answer, /^HTTP\/1.1 401 .*UNAUTHORIZED/s)
})

test('an ended session cannot try passwords, right or wrong', async () => {
  const ada = await t.signUp('Ada')
  for (const currentPassword of [PASSWORD, 'a wrong password']) {
    const stolen = await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
    const thief = { ...ada, headers: { authorization: `Bearer ${stolen.body.token}` } }
    const asked = { currentPassword, newPassword: 'another horse battery' }
    const answer = await sendLate(thief, 'change-password', asked, () =>
      ada.post('/api/auth/revoke-other-sessions'),
    )
    assert.match(answer, /^HTTP\/1.1 401 .*UNAUTHORIZED/s, currentPassword)
  }
})

test('no question is answered to a session that ends while the body arrives', async () => {
  const questions: Readonly<Record<string, object>> = {
    'organization/check-slug': { slug: 'free' },
    'organization/has-permission': { permissions: { member: ['create'] } },
    'admin/has-permission': { permissions: { user: ['list'] } },
    'get-session': {},
    'account-info': { providerId: 'credential' },
  }
  for (const [path, body] of Object.entries(questions)) {
    const ada = await t.signUp('Ada')
    await ada.post('/api/auth/organization/create', { name: 'Acme', slug: `acme-${ada.id}` })
    const answer = await sendLate(ada, path, body, () => ada.post('/api/auth/sign-out'))
    assert.match(answer, /^HTTP\/1.1 401 .*UNAUTHORIZED/s, path)
  }
})

test('no question is answered to a session that ends before an empty body does', async () => {
  const ada = await t.signUp('Ada')
  const answer = await sendLate(ada, 'get-session', undefined, () => ada.post('/api/auth/sign-out'))
  assert.match(answer, /^HTTP\/1.1 401 .*UNAUTHORIZED/s)
})

test('options to sign in name no account when its session ends while the body arrives', async () => {
  const path = 'passkey/generate-authenticate-options'
  const ada = await t.signUp('Ada')
  assert.match(await sendLate(ada, path, {}, async () => {}), /allowCredentials/)
  const answer = await sendLate(ada, path, {}, () => ada.post('/api/auth/sign-out'))
  assert.match(answer, /^HTTP\/1.1 200 /)
  assert.doesNotMatch(answer, /allowCredentials/)
  assert.ok(!answer.includes(ada.email) && !answer.includes(ada.id))
})

test('has-permission answers by the role at the end of the body', async () => {
  const ada = await t.signUp('Ada')
  await ada.post('/api/auth/organization/create', { name: 'Acme', slug: `acme-${ada.id}` })
  const lose = async () => {
    await kernel.db.updateTable('member').set({ role: 'member' }).where('userId', '=', ada.id).execute()
    await kernel.coherence.settle()
  }
  const asked = { permissions: { member: ['create'] } }
  assert.match(await sendLate(ada, 'organization/has-permission', asked, lose), /"success":false/)
})
