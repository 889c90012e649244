import assert from 'node:assert/strict'
import { test } from 'node:test'
import { banByOperator, setRoleByOperator } from '#auth/admin/operator.ts'
import { browser } from '#test/cookie-jar.ts'
import { type Actor, type Answer, actor, PASSWORD, testService, type User } from '#test/harness.ts'
import { cookiesOf, enrolTotp, SESSION_COOKIE } from '#test/second-factor.ts'

const t = await testService({
  config: {
    auth: { one_time_token: { enabled: true }, two_factor: { required_for: ['auditor'] } },
    session: { max_per_user: 3 },
  },
})
const { db } = t.service.kernel
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

type Session = Actor & { readonly id: string; readonly token: string }

const generate = async (who: Actor): Promise<string> => {
  const { status, body, text } = await who.get('/api/auth/one-time-token/generate')
  assert.equal(status, 200, text)
  return body.token
}
const verify = (token: string, who: Actor = t.anon, headers = {}): Promise<Answer> =>
  who.post('/api/auth/one-time-token/verify', { token }, { headers })
const refused = ({ status, body }: Answer) => [status, body?.code]
const INVALID = [400, 'INVALID_TOKEN']

async function derive(who: Actor): Promise<Session> {
  const { status, body, text } = await verify(await generate(who))
  assert.equal(status, 200, text)
  const { token, id } = body.session
  return { ...actor(t.url, { authorization: `Bearer ${token}` }), token, id }
}
const signIn = async ({ email }: User, rememberMe = true): Promise<Actor> => {
  const { body } = await t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD, rememberMe })
  return actor(t.url, { authorization: `Bearer ${body.token}` })
}
const sessionOf = async (who: Actor) => (await who.get('/api/auth/get-session')).body?.session
const alive = async (...who: readonly Actor[]) =>
  (await Promise.all(who.map((one) => one.get('/api/auth/get-session')))).map(({ status }) => status === 200)

test('a one-time token begins another session of the user, once, with the age and the proofs of the first one', async () => {
  const ada = await t.signUp('Ada')
  t.advance(HOUR)
  const token = await generate(ada)
  assert.ok(token.length >= 43)
  const answer = await verify(token, t.anon, { 'user-agent': 'another browser' })
  const { session, user } = answer.body
  assert.equal(user.email, ada.email)
  assert.equal(answer.headers.get('set-auth-token'), session.token)
  assert.equal(cookiesOf(answer)[SESSION_COOKIE], session.token)
  assert.equal(answer.headers.get('cache-control'), 'no-store')

  const first = await sessionOf(ada)
  assert.notEqual(session.token, ada.token)
  assert.notEqual(session.id, first.id)
  assert.deepEqual([session.createdAt, session.expiresAt], [first.createdAt, first.expiresAt])
  assert.equal(session.userAgent, 'another browser')
  const rows = await db.selectFrom('session').selectAll().where('userId', '=', ada.id).execute()
  const proofs = rows.map(({ shown, userHad, authTime, passwordShownAt, factorShownAt, remembered }) => ({
    ...{ shown, userHad, authTime, passwordShownAt, factorShownAt, remembered },
  }))
  assert.deepEqual(proofs[0], proofs[1])
  assert.deepEqual(proofs[0]?.shown, ['password'])
  assert.equal(rows.find(({ id }) => id === session.id)?.originSessionId, first.id)

  assert.deepEqual(refused(await verify(token)), INVALID)
  const told = await db
    .selectFrom('auditEvent')
    .select(['action', 'details'])
    .where('targetId', '=', ada.id)
    .where('action', '=', 'user.signed_in')
    .execute()
  assert.partialDeepStrictEqual(told.at(-1)?.details, { sessionId: session.id, way: 'one-time token' })
})

test('of 50 parallel requests with one token one gets a session', async () => {
  const ada = await t.signUp('Ada')
  const token = await generate(ada)
  const answers = await Promise.all(Array.from({ length: 50 }, () => verify(token)))
  assert.deepEqual(answers.filter(({ status }) => status === 200).length, 1)
  const others = answers.filter(({ status }) => status !== 200)
  assert.deepEqual([...new Set(others.map((answer) => refused(answer).join(' ')))], ['400 INVALID_TOKEN'])
  const sessions = await db.selectFrom('session').select('id').where('userId', '=', ada.id).execute()
  assert.equal(sessions.length, 2)
})

test('a session that was begun with a token ends with the other one, and not the other way round', async () => {
  const ada = await t.signUp('Ada')
  const app = await derive(ada)
  const page = await derive(app)
  assert.deepEqual(await alive(ada, app, page), [true, true, true])
  assert.equal((await page.post('/api/auth/sign-out')).status, 200)
  assert.deepEqual(await alive(ada, app, page), [true, true, false])
  const again = await derive(app)
  assert.equal((await app.get('/api/auth/list-sessions')).body.length, 3)
  assert.deepEqual(await alive(ada, app, again), [true, true, true])
  assert.equal((await ada.post('/api/auth/sign-out')).status, 200)
  assert.deepEqual(await alive(ada, app, again), [false, false, false])
})

test('a session that was begun with a token and ends all others outlives the other one', async () => {
  const ada = await t.signUp('Ada')
  const derived = await derive(ada)
  const below = await derive(derived)
  assert.equal((await derived.post('/api/auth/revoke-other-sessions')).status, 200)
  assert.deepEqual(await alive(ada, derived, below), [false, true, false])
})

test('a token ends after three minutes, and with its session, its token, its user or all links of the user', async () => {
  const waited = await t.signUp('Waited')
  const late = await generate(waited)
  t.advance(3 * MINUTE + 1_000)
  assert.deepEqual(refused(await verify(late)), INVALID)

  const ends: Readonly<Record<string, (user: User, other: Actor) => Promise<unknown>>> = {
    'sign-out': (user) => user.post('/api/auth/sign-out'),
    revoked: (_user, other) => other.post('/api/auth/revoke-other-sessions'),
    reauthenticated: (user) => user.post('/api/auth/reauthenticate', { password: PASSWORD }),
    'new password': (user) =>
      user.post('/api/auth/change-password', {
        currentPassword: PASSWORD,
        newPassword: 'another good password',
      }),
    banned: ({ id }) => banByOperator(t.service.kernel, id, { reason: null, expires: null }),
    deleted: (user) => user.post('/api/auth/delete-user', { password: PASSWORD }),
  }
  for (const [name, end] of Object.entries(ends)) {
    const user = await t.signUp('Ada')
    const other = await signIn(user)
    const token = await generate(user)
    await end(user, other)
    assert.deepEqual(refused(await verify(token)), INVALID, name)
  }
  for (const unknown of ['', 'x', 'A'.repeat(43)]) assert.deepEqual(refused(await verify(unknown)), INVALID)
})

test('a session that is not fresh begins none that is', async () => {
  const ada = await t.signUp('Ada')
  t.advance(11 * MINUTE)
  const app = await derive(ada)
  const unlink = (who: Actor) => who.post('/api/auth/unlink-account', { providerId: 'credential' })
  assert.deepEqual(refused(await unlink(app)), [403, 'SESSION_NOT_FRESH'])
  const proof = await app.post('/api/auth/reauthenticate', { password: PASSWORD })
  const renewed = actor(t.url, { authorization: `Bearer ${proof.body.token}` })
  assert.deepEqual(refused(await unlink(renewed)), [400, 'FAILED_TO_UNLINK_LAST_ACCOUNT'])
  assert.deepEqual(refused(await unlink(ada)), [403, 'SESSION_NOT_FRESH'])
})

test('a session that has shown the second factor begins one that has, and one that lacks a required factor begins none', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  await setRoleByOperator(t.service.kernel, ada.id, 'auditor')
  const app = await derive(ada)
  assert.equal((await app.get('/api/auth/list-sessions')).status, 200)
  const token = await generate(app)
  await db
    .updateTable('session')
    .set({ shown: ['password'] })
    .where('userId', '=', ada.id)
    .execute()
  await t.service.kernel.coherence.settle()
  const closed = await ada.get('/api/auth/one-time-token/generate')
  assert.deepEqual(refused(closed), [403, 'TWO_FACTOR_REQUIRED'])
  const { body } = await verify(token)
  const restricted = actor(t.url, { authorization: `Bearer ${body.session.token}` })
  assert.deepEqual(refused(await restricted.get('/api/auth/list-sessions')), [403, 'TWO_FACTOR_REQUIRED'])
})

test('a session that is used lives as long as its origin, and its cookie as long as itself', async () => {
  const ada = await t.signUp('Ada')
  const { token } = await derive(ada)
  const page = browser(t, { token })
  const { expiresAt: end } = await sessionOf(ada)
  t.advance(2 * DAY)
  assert.equal((await sessionOf(page)).expiresAt, end)
  // Now the origin is used, and so it is extended.
  const extended = await sessionOf(ada)
  assert.ok(extended.expiresAt > end)
  t.advance(DAY + 1_000)
  const answer = await page.get('/api/auth/get-session')
  assert.equal(answer.body.session.expiresAt, extended.expiresAt)
  const seconds = Number(/Max-Age=(\d+)/.exec(answer.headers.get('set-cookie') ?? '')?.[1])
  assert.ok(Math.abs(seconds - 6 * 86_400) < 60, `${seconds}`)
  t.advance(6 * DAY)
  assert.deepEqual(await alive(ada, page), [false, false])
})

test('a session that the browser does not remember begins one that it does not remember either', async () => {
  const ada = await t.signUp('Ada')
  const short = await signIn(ada, false)
  t.advance(12 * HOUR)
  const answer = await verify(await generate(short))
  assert.doesNotMatch(answer.headers.get('set-cookie') ?? '', /Max-Age/i)
  assert.equal(answer.body.session.expiresAt, (await sessionOf(short)).expiresAt)
})

test('the oldest sessions beyond session.max_per_user end, but not those that the new one ends with', async () => {
  const ada = await t.signUp('Ada')
  const [second, third] = [await signIn(ada), await signIn(ada)]
  const app = await derive(ada)
  assert.deepEqual(await alive(ada, second, third, app), [true, false, true, true])
  const page = await derive(app)
  assert.deepEqual(await alive(ada, third, app, page), [true, false, true, true])
})

test('a session begins others only five deep', async () => {
  const ada = await t.signUp('Ada')
  let last: Actor = ada
  for (let depth = 1; depth < 5; depth++) last = await derive(last)
  const answer = await last.get('/api/auth/one-time-token/generate')
  assert.deepEqual(refused(answer), [403, 'TOO_MANY_DERIVED_SESSIONS'])
  assert.deepEqual(await alive(ada, last), [true, true])
})

test('a page of a foreign origin begins no session with a token, and a look at its address issues none', async () => {
  const ada = await t.signUp('Ada')
  const token = await generate(ada)
  const foreign = await verify(token, t.anon, { origin: 'https://evil.example' })
  assert.deepEqual(refused(foreign), [403, 'INVALID_ORIGIN'])
  assert.equal(foreign.headers.get('set-cookie'), null)
  assert.equal((await verify(token)).status, 200)
  const looked = await ada.send('HEAD', '/api/auth/one-time-token/generate')
  assert.equal(looked.status, 200)
  const open = await db.selectFrom('verification').select('purpose').where('userId', '=', ada.id).execute()
  assert.deepEqual(open, [])
  assert.equal((await t.anon.get('/api/auth/one-time-token/generate')).status, 401)
})

test('the routes do not exist unless they are enabled, and set no cookie if the configuration says so', async () => {
  const off = await testService()
  const ada = await off.signUp('Ada')
  assert.equal((await ada.get('/api/auth/one-time-token/generate')).status, 404)
  assert.equal((await ada.post('/api/auth/one-time-token/verify', { token: 'x' })).status, 404)

  const bare = await testService({
    config: { auth: { one_time_token: { enabled: true, set_session_cookie: false, expires_in: HOUR } } },
  })
  const bob = await bare.signUp('Bob')
  const { body } = await bob.get('/api/auth/one-time-token/generate')
  bare.advance(HOUR - MINUTE)
  const answer = await bare.anon.post('/api/auth/one-time-token/verify', { token: body.token })
  assert.equal(answer.headers.get('set-cookie'), null)
  assert.equal(answer.headers.get('set-auth-token'), answer.body.session.token)
})
