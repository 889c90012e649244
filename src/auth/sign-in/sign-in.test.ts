import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, PASSWORD, testService } from '#test/harness.ts'

const t = await testService({ config: { session: { max_per_user: 5 } } })
const { db } = t.service.kernel

const byEmail = (email: unknown, password: unknown = PASSWORD, more: Record<string, unknown> = {}) =>
  t.anon.post('/api/auth/sign-in/email', { email, password, ...more })
const byUsername = (username: unknown, password: unknown = PASSWORD, more: Record<string, unknown> = {}) =>
  t.anon.post('/api/auth/sign-in/username', { username, password, ...more })
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const sessionsOf = (userId: string) =>
  db.selectFrom('session').select('id').where('userId', '=', userId).execute()

/** The answer starts no session. */
function isSilent({ headers, body }: Answer): void {
  assert.equal(headers.get('set-cookie'), null)
  assert.equal(headers.get('set-auth-token'), null)
  assert.deepEqual(Object.keys(body).toSorted(), ['code', 'message'])
}

let count = 0
async function ada(username?: string) {
  const email = `ada-${++count}@example.com`
  const { body } = await t.anon.post('/api/auth/sign-up/email', {
    name: 'Ada',
    email,
    password: PASSWORD,
    username,
  })
  return { email, id: String(body.user.id), token: String(body.token) }
}

test('sign-in by email answers token, user and url, and starts a session of its own', async () => {
  const { email, id, token } = await ada()
  const answer = await byEmail(email)
  assert.equal(answer.status, 200)
  assert.deepEqual(Object.keys(answer.body).toSorted(), ['redirect', 'token', 'url', 'user'])
  assert.deepEqual([answer.body.redirect, answer.body.url], [false, null])
  assert.deepEqual(Object.keys(answer.body.user).toSorted(), [
    'createdAt', 'displayUsername', 'email', 'emailVerified', 'id', 'image', 'isAnonymous', 'name',
    'twoFactorEnabled', 'updatedAt', 'username',
  ]) // biome-ignore format: one line reads better
  assert.notEqual(answer.body.token, token)
  assert.equal(answer.headers.get('set-auth-token'), answer.body.token)
  assert.match(answer.headers.get('set-cookie') ?? '', new RegExp(`=${answer.body.token};.*Max-Age=604800`))
  assert.equal((await t.anon.get('/api/auth/get-session', bearer(answer.body.token))).body.user.id, id)
  assert.equal((await sessionsOf(id)).length, 2)

  const leading = await byEmail(email, PASSWORD, { callbackURL: '/welcome?a=1#b' })
  assert.deepEqual([leading.body.redirect, leading.body.url], [true, '/welcome?a=1#b'])
})

test('an unknown email and a wrong password get the same answer', async () => {
  const { email, id } = await ada()
  const answers = [
    await byEmail(email, 'wrong password'),
    await byEmail('nobody@example.com'),
    await byEmail(email, PASSWORD.toUpperCase()),
  ]
  for (const answer of answers) {
    assert.deepEqual([answer.status, answer.body], [401, answers[0]?.body])
    assert.equal(answer.body.code, 'INVALID_EMAIL_OR_PASSWORD')
    isSilent(answer)
  }
  assert.equal((await sessionsOf(id)).length, 1)
})

test('a missing or malformed email or password is 400, before anything is looked up', async () => {
  const { email } = await ada()
  const cases: readonly (readonly [unknown, unknown, string])[] = [
    [undefined, PASSWORD, 'VALIDATION_ERROR'],
    [email, null, 'VALIDATION_ERROR'],
    [email, '', 'VALIDATION_ERROR'],
    ['', PASSWORD, 'INVALID_EMAIL'],
    ['ada', PASSWORD, 'INVALID_EMAIL'],
    [['a'], PASSWORD, 'VALIDATION_ERROR'],
    [email, { length: 8 }, 'VALIDATION_ERROR'],
    [email, 'x'.repeat(1_025), 'VALIDATION_ERROR'],
  ]
  for (const [given, password, code] of cases) {
    const answer = await byEmail(given, password)
    assert.deepEqual([answer.status, answer.body.code], [400, code], JSON.stringify([given, password]))
    isSilent(answer)
  }
})

test('sign-in by username ignores case, and otherwise answers and refuses as by email', async () => {
  const { id } = await ada('Ada.L')
  for (const spelling of ['ada.l', 'ADA.L', 'Ada.L']) {
    const { status, body } = await byUsername(spelling)
    assert.deepEqual([status, body.user.id], [200, id])
    assert.deepEqual(Object.keys(body).toSorted(), ['redirect', 'token', 'url', 'user'])
    assert.deepEqual([body.redirect, body.url], [false, null])
  }
  const leading = await byUsername('ada.l', PASSWORD, { callbackURL: '/welcome' })
  assert.deepEqual([leading.body.redirect, leading.body.url], [true, '/welcome'])
  const refused = [
    await byUsername('ada.l', 'wrong password'),
    await byUsername('nobody'),
    await byUsername('!'),
    await byUsername('a b'),
  ]
  for (const answer of refused) {
    assert.deepEqual([answer.status, answer.body], [401, refused[0]?.body])
    assert.equal(answer.body.code, 'INVALID_USERNAME_OR_PASSWORD')
    isSilent(answer)
  }
  for (const body of [
    { password: PASSWORD },
    { username: '', password: PASSWORD },
    { username: 'ada.l' },
    { username: 'ada.l', password: '' },
  ]) {
    const answer = await t.anon.post('/api/auth/sign-in/username', body)
    assert.deepEqual([answer.status, answer.body.code], [400, 'VALIDATION_ERROR'])
  }
})

test('a banned user cannot sign in until the ban ends, and a wrong password does not show the ban', async () => {
  const { email, id, token } = await ada()
  const ban = (banExpires: Date | null, banned = true) =>
    db.updateTable('user').set({ banned, banExpires }).where('id', '=', id).execute()
  const now = t.service.kernel.now()

  await ban(null)
  const answer = await byEmail(email)
  assert.deepEqual([answer.status, answer.body.code], [403, 'BANNED_USER'])
  isSilent(answer)
  assert.equal((await byEmail(email, 'wrong password')).body.code, 'INVALID_EMAIL_OR_PASSWORD')
  assert.equal(
    (await t.anon.get('/api/auth/get-session', bearer(token))).status,
    401,
    'earlier sessions are not accepted either',
  )
  assert.equal((await sessionsOf(id)).length, 1)

  await ban(new Date(now.getTime() + 60_000))
  assert.equal((await byEmail(email)).body.code, 'BANNED_USER')
  t.advance(61_000)
  assert.equal((await byEmail(email)).status, 200)
  await ban(null, false)
  assert.equal((await byEmail(email)).status, 200)
})

test('a user has at most max_per_user sessions; the oldest ends', async () => {
  const { email, id, token } = await ada()
  const tokens = [token]
  for (let round = 0; round < 6; round++) tokens.push((await byEmail(email)).body.token)
  assert.equal((await sessionsOf(id)).length, 5)
  const alive = await Promise.all(tokens.map((one) => t.anon.get('/api/auth/get-session', bearer(one))))
  assert.deepEqual(
    alive.map(({ status }) => status),
    [401, 401, 200, 200, 200, 200, 200],
  )
})

test('no password signs in to an account without one', async () => {
  const { email, id } = await ada()
  await db.updateTable('account').set({ password: null }).where('userId', '=', id).execute()
  for (const password of [PASSWORD, 'null', ' ']) assert.equal((await byEmail(email, password)).status, 401)
})

test('a hash of an unknown form matches nothing and causes no error', async () => {
  const { email, id } = await ada()
  for (const password of [
    '',
    'plain',
    '$argon2id$',
    '$argon2id$v=19$m=1024,t=1,p=1$AAAA$AAAA',
    '$unknown$1$x$y',
    'a:b',
  ]) {
    await db.updateTable('account').set({ password }).where('userId', '=', id).execute()
    const answer = await byEmail(email)
    assert.deepEqual([answer.status, answer.body.code], [401, 'INVALID_EMAIL_OR_PASSWORD'], password)
  }
})

test('with the cookie of another user the answer is the session of the user who has signed in', async () => {
  const [first, second] = [await ada(), await ada()]
  const answer = await t.anon.post(
    '/api/auth/sign-in/email',
    { email: second.email, password: PASSWORD },
    { headers: { cookie: `service-auth.session-token=${first.token}` } },
  )
  assert.equal(answer.body.user.id, second.id)
  assert.equal((await t.anon.get('/api/auth/get-session', bearer(first.token))).status, 200)
})
