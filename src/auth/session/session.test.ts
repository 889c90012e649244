import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testService } from '#test/harness.ts'

const t = await testService()
const DAY = 86_400_000

test('a session is found by Bearer and by cookie, and the Bearer token wins when both are sent', async () => {
  const ada = await t.signUp('Ada')
  const bob = await t.signUp('Bob')
  const cookie = `service-auth.session-token=${bob.token}`

  const byBearer = await ada.get('/api/auth/get-session')
  assert.equal(byBearer.status, 200)
  assert.equal(byBearer.body.session.token, ada.token)
  assert.equal(byBearer.body.user.email, ada.email)
  assert.deepEqual(
    [byBearer.body.user.banned, byBearer.body.user.banReason, byBearer.body.user.role],
    [false, null, 'user'],
  )

  const byCookie = await t.anon.get('/api/auth/get-session', { headers: { cookie } })
  assert.equal(byCookie.body.user.email, bob.email)
  const both = await ada.get('/api/auth/get-session', { headers: { cookie } })
  assert.equal(both.body.user.email, ada.email)
  const lower = await t.anon.get('/api/auth/get-session', {
    headers: { authorization: `bearer ${ada.token}` },
  })
  assert.equal(lower.body.user.email, ada.email)
})

test('without a session, with a wrong token and after the end get-session is 401', async () => {
  const ada = await t.signUp('Ada')
  for (const headers of [
    {},
    { authorization: 'Bearer nobody' },
    { authorization: `Bearer ${'A'.repeat(43)}` },
  ]) {
    const answer = await t.anon.get('/api/auth/get-session', { headers })
    assert.equal(answer.status, 401)
    assert.deepEqual(Object.keys(answer.body).sort(), ['code', 'message'])
    assert.equal(answer.body.code, 'UNAUTHORIZED')
  }
  t.advance(8 * DAY)
  assert.equal((await ada.get('/api/auth/get-session')).status, 401)
})

test('sign-out ends the session at once and clears the cookie', async () => {
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  const answer = await ada.post('/api/auth/sign-out')
  assert.deepEqual(answer.body, { success: true })
  assert.match(
    answer.headers.get('set-cookie') ?? '',
    /^service-auth\.session-token=;.*Expires=Thu, 01 Jan 1970/,
  )
  assert.equal((await ada.get('/api/auth/get-session')).status, 401)
  assert.equal((await ada.post('/api/auth/sign-out')).status, 401)
})

test('sign-out takes an empty body', async () => {
  const ada = await t.signUp('Ada')
  const answer = await ada.send('POST', '/api/auth/sign-out')
  assert.equal(answer.status, 200)
})

test('a session that is used after a day is extended, and its cookie is sent again', async () => {
  const ada = await t.signUp('Ada')
  const headers = { cookie: `service-auth.session-token=${ada.token}` }
  const before = await t.anon.get('/api/auth/get-session', { headers })
  assert.equal(before.headers.get('set-cookie'), null)

  t.advance(DAY + 1_000)
  const rolled = await t.anon.get('/api/auth/get-session', { headers })
  assert.match(rolled.headers.get('set-cookie') ?? '', new RegExp(`=${ada.token};.*Max-Age=604800`))
  const gained = Date.parse(rolled.body.session.expiresAt) - Date.parse(before.body.session.expiresAt)
  assert.ok(gained > DAY, `${gained}`)
  assert.equal((await t.anon.get('/api/auth/get-session', { headers })).headers.get('set-cookie'), null)
})

test('with rememberMe false the cookie has no Max-Age and the session ends after a day', async () => {
  const { email } = await t.signUp('Ada')
  const answer = await t.anon.post('/api/auth/sign-in/email', {
    email,
    password: PASSWORD,
    rememberMe: false,
  })
  assert.doesNotMatch(answer.headers.get('set-cookie') ?? '', /Max-Age/i)
  const headers = { authorization: `Bearer ${answer.body.token}` }
  t.advance(DAY - 60_000)
  assert.equal((await t.anon.get('/api/auth/get-session', { headers })).status, 200)
  t.advance(120_000)
  assert.equal((await t.anon.get('/api/auth/get-session', { headers })).status, 401)
})

test('a cookie is refused from a foreign page and accepted from our own', async () => {
  const ada = await t.signUp('Ada')
  const signOut = (headers: Record<string, string>) =>
    t.anon.post(
      '/api/auth/sign-out',
      {},
      { headers: { cookie: `service-auth.session-token=${ada.token}`, ...headers } },
    )

  for (const origin of ['https://evil.example', 'http://localhost.evil.example', 'http://localhost:1']) {
    const answer = await signOut({ origin })
    assert.deepEqual([answer.status, answer.body.code], [403, 'INVALID_ORIGIN'], origin)
  }
  assert.equal((await signOut({ origin: 'null' })).body.code, 'MISSING_OR_NULL_ORIGIN')
  assert.equal((await signOut({ 'sec-fetch-site': 'cross-site' })).body.code, 'INVALID_ORIGIN')
  assert.equal((await signOut({ referer: 'https://evil.example/page' })).body.code, 'INVALID_ORIGIN')
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  assert.equal((await signOut({ origin: t.url })).status, 200)
})

test('a page of a foreign origin cannot sign a visitor in, with or without a cookie', async () => {
  const { email } = await t.signUp('Ada')
  const answer = await t.anon.post(
    '/api/auth/sign-in/email',
    { email, password: PASSWORD },
    { headers: { origin: 'https://evil.example' } },
  )
  assert.deepEqual([answer.status, answer.body.code], [403, 'INVALID_ORIGIN'])
  assert.equal(answer.headers.get('set-cookie'), null)
})
