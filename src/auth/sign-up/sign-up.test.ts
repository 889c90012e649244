import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testService } from '#test/harness.ts'

const t = await testService()
const { db } = t.service.kernel

const signUp = (body: Record<string, unknown>) =>
  t.anon.post('/api/auth/sign-up/email', { name: 'Ada', password: PASSWORD, ...body })
const signIn = (email: string, password: string) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })
const users = () => db.selectFrom('user').select('id').execute()

/** A new address for each test. */
let count = 0
const fresh = (): string => `user-${++count}@example.com`

test('sign-up answers the token and the reduced user, and nothing else', async () => {
  const email = fresh()
  const answer = await signUp({ email, image: 'https://example.com/ada.png' })
  assert.equal(answer.status, 200)
  const { token, user, ...rest } = answer.body
  assert.deepEqual(rest, {})
  assert.match(token, /^[A-Za-z0-9_-]{43}$/)
  assert.match(user.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.match(user.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.deepEqual(user, {
    id: user.id,
    name: 'Ada',
    email,
    emailVerified: false,
    image: 'https://example.com/ada.png',
    createdAt: user.createdAt,
    updatedAt: user.createdAt,
    username: null,
    displayUsername: null,
    twoFactorEnabled: false,
    isAnonymous: false,
  })
  assert.equal(answer.headers.get('set-auth-token'), token)
  assert.match(
    answer.headers.getSetCookie()[0] ?? '',
    new RegExp(
      `^service-auth\\.session-token=${token}; Max-Age=604800; Path=/; HttpOnly; Secure; SameSite=Lax$`,
    ),
  )
})

test('the password is stored as an Argon2id hash and the token as its SHA-256, and neither is answered', async () => {
  const { body, text } = await signUp({ email: fresh() })
  const account = await db
    .selectFrom('account')
    .select('password')
    .where('userId', '=', body.user.id)
    .executeTakeFirst()
  assert.match(account?.password ?? '', /^\$argon2id\$v=19\$m=1024,t=1,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  assert.doesNotMatch(text, /argon2|password|"role"|hash/i)
  const session = await db
    .selectFrom('session')
    .selectAll()
    .where('userId', '=', body.user.id)
    .executeTakeFirst()
  assert.equal(session?.tokenHash.length, 32)
  assert.doesNotMatch(JSON.stringify(session), new RegExp(body.token))
})

test('a body sets no role, verification, ban, id or date', async () => {
  const email = fresh()
  const { body } = await signUp({
    email,
    id: '01900000-0000-7000-8000-000000000000',
    userId: '01900000-0000-7000-8000-000000000000',
    role: 'admin',
    emailVerified: true,
    banned: true,
    banReason: 'x',
    banExpires: '2030-01-01T00:00:00Z',
    twoFactorEnabled: true,
    createdAt: '2000-01-01T00:00:00Z',
    data: { role: 'admin' },
  })
  const row = await db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirst()
  assert.equal(row?.id, body.user.id)
  assert.notEqual(row?.id, '01900000-0000-7000-8000-000000000000')
  assert.deepEqual(
    [row?.role, row?.emailVerified, row?.banned, row?.banReason, row?.banExpires, row?.twoFactorEnabled],
    ['user', false, false, null, null, false],
  )
  assert.ok((row?.createdAt.getFullYear() ?? 0) > 2020)
})

const REFUSED: readonly (readonly [
  body: Record<string, unknown>,
  status: number,
  code: string,
  names?: RegExp,
])[] = [
  [{ email: undefined }, 400, 'VALIDATION_ERROR', /email/],
  [{ name: undefined }, 400, 'VALIDATION_ERROR', /name/],
  [{ password: undefined }, 400, 'VALIDATION_ERROR', /password/],
  [{ email: 5 }, 400, 'VALIDATION_ERROR', /email/],
  [{ name: ['a'] }, 400, 'VALIDATION_ERROR', /name/],
  [{ password: { a: 1 } }, 400, 'VALIDATION_ERROR', /password/],
  [{ username: null }, 400, 'VALIDATION_ERROR', /username/],
  [{ rememberMe: 'perhaps' }, 400, 'VALIDATION_ERROR', /rememberMe/],
  [{ name: 'x'.repeat(101) }, 400, 'VALIDATION_ERROR', /name/],
  [{ name: 'Ada\nBcc: eve@example.com' }, 400, 'VALIDATION_ERROR', /name/],
  [{ name: '\u202eadA' }, 400, 'VALIDATION_ERROR', /name/],
  [{ name: '\u001b[31mAda' }, 400, 'VALIDATION_ERROR', /name/],
  [{ image: 'javascript:alert(1)' }, 400, 'VALIDATION_ERROR', /image/],
  [{ image: 'data:text/html,x' }, 400, 'VALIDATION_ERROR', /image/],
  [{ email: 'ada@ex%61mple.com' }, 400, 'INVALID_EMAIL'],
  [{ email: 'ada@0x7f.1' }, 400, 'INVALID_EMAIL'],
  [{ username: 'zoë' }, 400, 'INVALID_USERNAME'],
  [{ username: '\u0430da' }, 400, 'INVALID_USERNAME'],
  [{ username: 'mallory', displayUsername: 'Admin' }, 400, 'INVALID_USERNAME', /case/],
  [{ username: 'mallory', displayUsername: 'mallory\u200b' }, 400, 'INVALID_USERNAME'],
  [{ email: '' }, 400, 'INVALID_EMAIL'],
  [{ email: 'ada' }, 400, 'INVALID_EMAIL'],
  [{ email: 'ada@' }, 400, 'INVALID_EMAIL'],
  [{ email: '@example.com' }, 400, 'INVALID_EMAIL'],
  [{ email: 'ada@@example.com' }, 400, 'INVALID_EMAIL'],
  [{ email: 'ada@example.com, eve@example.com' }, 400, 'INVALID_EMAIL'],
  [{ email: 'Ada <ada@example.com>' }, 400, 'INVALID_EMAIL'],
  [{ email: 'ada@example.com\r\nbcc: eve@example.com' }, 400, 'INVALID_EMAIL'],
  [{ email: '"ada lovelace"@example.com' }, 400, 'INVALID_EMAIL'],
  [{ email: `${'a'.repeat(65)}@example.com` }, 400, 'INVALID_EMAIL'],
  [{ password: '' }, 400, 'PASSWORD_TOO_SHORT'],
  [{ password: '1234567' }, 400, 'PASSWORD_TOO_SHORT', /8/],
  [{ password: 'ﬁ'.repeat(3) }, 400, 'PASSWORD_TOO_SHORT'],
  [{ password: 'x'.repeat(129) }, 400, 'PASSWORD_TOO_LONG', /128/],
  [{ password: 'ﬃ'.repeat(43) }, 400, 'PASSWORD_TOO_LONG'],
  [{ username: 'ab' }, 400, 'INVALID_USERNAME'],
  [{ username: '' }, 400, 'INVALID_USERNAME'],
  [{ username: 'a'.repeat(31) }, 400, 'INVALID_USERNAME'],
  [{ username: 'ada lovelace' }, 400, 'INVALID_USERNAME'],
  [{ username: 'ada-lovelace' }, 400, 'INVALID_USERNAME'],
  [{ username: 'ada@example.com' }, 400, 'INVALID_USERNAME'],
  [{ username: 'ada\u200b' }, 400, 'INVALID_USERNAME'],
  [{ displayUsername: 'no spaces here' }, 400, 'INVALID_USERNAME'],
]

test('a missing, malformed or invalid member is refused by name, and no user is added', async () => {
  const before = (await users()).length
  for (const [body, status, code, names = /./] of REFUSED) {
    const answer = await signUp({ email: fresh(), ...body })
    assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(body))
    assert.match(answer.body.message, names)
    assert.equal(answer.headers.get('set-cookie'), null)
  }
  assert.equal((await users()).length, before)
})

test('a password may have 8 to 128 characters, counted after NFKC, and any of them', async () => {
  for (const password of [
    'x'.repeat(8),
    'x'.repeat(128),
    'ﬃ'.repeat(3),
    '🙈'.repeat(8),
    '  spaces count  ',
    '密码密码密码密码',
  ]) {
    const email = fresh()
    assert.equal((await signUp({ email, password })).status, 200, password)
    assert.equal((await signIn(email, password)).status, 200, password)
  }
})

test('all Unicode compositions of a password are the same password', async () => {
  const email = fresh()
  await signUp({ email, password: 'Ångström-é-ﬁ' })
  assert.equal((await signIn(email, 'A\u030angstro\u0308m-e\u0301-fi')).status, 200)
  assert.equal((await signIn(email, 'Angstrom-e-fi')).status, 401)
})

test('case, spaces around and Unicode composition do not make another email', async () => {
  const first = await signUp({ email: '  Zoë.One@Example.COM ' })
  assert.equal(first.body.user.email, 'zoë.one@example.com')
  for (const spelling of [
    'zoë.one@example.com',
    'ZOË.ONE@EXAMPLE.COM',
    'zoe\u0308.one@example.com',
    '\tzoë.one@example.com\n',
    'zoë.one@ＥＸＡＭＰＬＥ。com',
    'zoë.one@exam\u00adple.com',
  ]) {
    const again = await signUp({ email: spelling })
    assert.deepEqual([again.status, again.body.code], [409, 'USER_ALREADY_EXISTS'], spelling)
    assert.equal((await signIn(spelling, PASSWORD)).status, 200, spelling)
  }
})

test('a username is stored in lower case, its display form as typed; each is derived from the other', async () => {
  const names = (body: Record<string, unknown>) =>
    signUp({ email: fresh(), ...body }).then((answer) => [
      answer.body.user.username,
      answer.body.user.displayUsername,
    ])
  assert.deepEqual(await names({ username: 'Ada.Lovelace_1' }), ['ada.lovelace_1', 'Ada.Lovelace_1'])
  assert.deepEqual(await names({ displayUsername: 'GraceHopper' }), ['gracehopper', 'GraceHopper'])
  assert.deepEqual(await names({ username: 'emmy', displayUsername: 'EMMY' }), ['emmy', 'EMMY'])
  assert.deepEqual(await names({}), [null, null])
})

test('case does not make another username', async () => {
  await signUp({ email: fresh(), username: 'Zora' })
  for (const username of ['zora', 'ZORA']) {
    const answer = await signUp({ email: fresh(), username })
    assert.deepEqual([answer.status, answer.body.code], [409, 'USERNAME_IS_ALREADY_TAKEN'])
    assert.deepEqual((await t.anon.post('/api/auth/is-username-available', { username })).body, {
      available: false,
    })
  }
  const available = (username: string) => t.anon.post('/api/auth/is-username-available', { username })
  assert.deepEqual((await available('zoe')).body, { available: true })
  assert.deepEqual((await available('no')).body, { available: false })
})

test('a taken email leaves the account as it was: no session, no event, no change of password', async () => {
  const email = fresh()
  const first = await signUp({ email })
  const again = await signUp({ email, password: 'another password', name: 'Eve' })
  assert.deepEqual([again.status, again.body.code], [409, 'USER_ALREADY_EXISTS'])
  assert.equal(again.headers.get('set-cookie'), null)
  assert.equal(again.headers.get('set-auth-token'), null)
  const { length } = await db
    .selectFrom('session')
    .select('id')
    .where('userId', '=', first.body.user.id)
    .execute()
  assert.equal(length, 1)
  assert.equal((await signIn(email, PASSWORD)).body.user.name, 'Ada')
  assert.equal((await signIn(email, 'another password')).status, 401)
})

test('a sign-up emits one event, after the commit; a refused one emits none', async () => {
  const emitted: string[] = []
  t.service.kernel.events.subscribe((name) => void emitted.push(name))
  const email = fresh()
  await signUp({ email })
  assert.deepEqual(emitted.splice(0), ['auth_user_created', 'auth_user_signed_in'])
  await signUp({ email })
  await signUp({ email: 'nonsense' })
  assert.deepEqual(emitted, [])
})

test('rememberMe false gives a session of one day, and a cookie until the browser closes', async () => {
  const answer = await signUp({ email: fresh(), rememberMe: 'false' })
  assert.doesNotMatch(answer.headers.get('set-cookie') ?? '', /Max-Age|Expires/i)
  const headers = { authorization: `Bearer ${answer.body.token}` }
  const { session } = (await t.anon.get('/api/auth/get-session', { headers })).body
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), 86_400_000)
})

test('the session records address and user agent', async () => {
  const answer = await t.anon.post(
    '/api/auth/sign-up/email',
    { name: 'Ada', email: fresh(), password: PASSWORD },
    { headers: { 'user-agent': `browser ${'x'.repeat(1_000)}`, 'x-forwarded-for': '203.0.113.9' } },
  )
  const { session } = (
    await t.anon.get('/api/auth/get-session', { headers: { authorization: `Bearer ${answer.body.token}` } })
  ).body
  assert.equal(session.ipAddress, '127.0.0.1')
  assert.equal(session.userAgent.length, 512)
})
