import assert from 'node:assert/strict'
import { test } from 'node:test'
import { banByOperator, setRoleByOperator } from '#auth/admin/operator.ts'
import { browser } from '#test/cookie-jar.ts'
import { type Actor, type Answer, actor, PASSWORD, testService, type User } from '#test/harness.ts'
import { codeOf, enrolTotp, SESSION_COOKIE } from '#test/second-factor.ts'

const t = await testService({ config: { auth: { multi_session: { enabled: true, maximum_sessions: 3 } } } })
const { kernel } = t.service
const { db } = kernel
const DAY = 86_400_000

const newBrowser = () => browser(t, { token: '' })
const enter = (who: Actor, { email }: User, more = {}): Promise<Answer> =>
  who.post('/api/auth/sign-in/email', { email, password: PASSWORD, ...more })
const refused = ({ status, body }: Answer) => [status, body?.code]
const list = async (who: Actor) => {
  const { status, body, text } = await who.get('/api/auth/multi-session/list-device-sessions')
  assert.equal(status, 200, text)
  return body as { session: { id: string; token: string }; user: { id: string; email: string } }[]
}
const setActive = (who: Actor, sessionToken: string) =>
  who.post('/api/auth/multi-session/set-active', { sessionToken })
const revoke = (who: Actor, sessionToken: string) =>
  who.post('/api/auth/multi-session/revoke', { sessionToken })
const whoIs = async (who: Actor) => (await who.get('/api/auth/get-session')).body?.user?.id
const handleOf = async (who: Actor, { id }: User): Promise<string> =>
  (await list(who)).find(({ user }) => user.id === id)?.session.token ?? ''

/** A browser in which these users have signed in, one after the other. */
async function shared(...names: readonly string[]) {
  const users: User[] = []
  for (const name of names) users.push(await t.signUp(name))
  const page = newBrowser()
  for (const user of users) assert.equal((await enter(page, user)).status, 200)
  return { page, users }
}

test('a browser keeps a session of each user who signs in, and goes on as any of them', async () => {
  const { page, users } = await shared('Ada', 'Bob')
  const [ada, bob] = users as [User, User]
  assert.equal(await whoIs(page), bob.id)
  const listed = await list(page)
  assert.deepEqual(
    listed.map(({ user }) => user.email),
    [bob.email, ada.email],
  )
  const [current, other] = listed
  assert.equal(current?.session.token, page.jar.get(SESSION_COOKIE))
  assert.match(other?.session.token ?? '', /^sh_/)

  const switched = await setActive(page, other?.session.token ?? '')
  assert.equal(switched.body.user.id, ada.id)
  assert.equal(switched.body.session.token, page.jar.get(SESSION_COOKIE))
  assert.match(switched.headers.get('set-cookie') ?? '', /Max-Age=60\d{4}; .*HttpOnly; Secure/)
  assert.equal(await whoIs(page), ada.id)
  // By the id of the session, too.
  assert.equal((await setActive(page, current?.session.id ?? '')).status, 200)
  assert.equal(await whoIs(page), bob.id)
})

test('a handle opens nothing in another browser, and a session of another browser is unknown here', async () => {
  const { page, users } = await shared('Ada', 'Bob')
  const [ada] = users as [User, User]
  const handle = await handleOf(page, ada)
  const phone = newBrowser()
  assert.deepEqual(await list(phone), [])
  for (const who of [phone, t.anon, ada]) {
    assert.deepEqual(refused(await setActive(who, handle)), [401, 'INVALID_SESSION_TOKEN'])
    assert.deepEqual(refused(await revoke(who, handle)), [401, 'INVALID_SESSION_TOKEN'])
  }
  for (const unknown of [ada.token, '', 'x', `sh_${ada.id}`])
    assert.deepEqual(refused(await setActive(page, unknown)), [401, 'INVALID_SESSION_TOKEN'], unknown)
  // A name of a cookie does not make a session that of another user.
  const forged = newBrowser()
  forged.jar.set(`${SESSION_COOKIE}_multi-${users[1]?.id}`, ada.token)
  assert.deepEqual(await list(forged), [])
  assert.deepEqual(await list(page).then(({ length }) => length), 2)
})

test('a session that ends by revoke is gone, and the newest of the others takes its place if it was the current one', async () => {
  const { page, users } = await shared('Ada', 'Bob', 'Cem')
  const [ada, bob, cem] = users as [User, User, User]
  const token = page.jar.get(`${SESSION_COOKIE}_multi-${ada.id}`) ?? ''
  assert.deepEqual((await revoke(page, await handleOf(page, ada))).body, { status: true })
  assert.equal(page.jar.has(`${SESSION_COOKIE}_multi-${ada.id}`), false)
  const headers = { authorization: `Bearer ${token}` }
  assert.equal((await t.anon.get('/api/auth/get-session', { headers })).status, 401)
  assert.equal(await whoIs(page), cem.id)
  const { actorId, action } = await db
    .selectFrom('auditEvent')
    .select(['actorId', 'action'])
    .where('targetId', '=', ada.id)
    .orderBy('id', 'desc')
    .executeTakeFirstOrThrow()
  assert.deepEqual([action, actorId], ['user.signed_out', ada.id])

  assert.equal((await revoke(page, await handleOf(page, cem))).status, 200)
  assert.equal(await whoIs(page), bob.id)
  assert.equal((await revoke(page, await handleOf(page, bob))).status, 200)
  assert.equal(page.jar.has(SESSION_COOKIE), false)
  assert.deepEqual(await list(page), [])
})

test('sign-out ends every session of the browser, and none elsewhere', async () => {
  const { page, users } = await shared('Ada', 'Bob')
  const kept = [...page.jar.values()]
  assert.deepEqual((await page.post('/api/auth/sign-out')).body, { success: true })
  assert.deepEqual(
    [...page.jar.keys()].filter((name) => name.startsWith(SESSION_COOKIE)),
    [],
  )
  for (const token of kept) {
    const headers = { authorization: `Bearer ${token}` }
    assert.equal((await t.anon.get('/api/auth/get-session', { headers })).status, 401)
  }
  for (const user of users) assert.equal(await whoIs(user), user.id)
})

test('sign-out ends the sessions that the browser keeps also when the current one has ended', async () => {
  const signOut = (who: Actor) => who.post('/api/auth/sign-out')
  const { page, users } = await shared('Ada', 'Bob')
  const [ada, bob] = users as [User, User]
  const [current, other] = await list(page)
  assert.equal((await bob.post('/api/auth/revoke-session', { token: current?.session.id })).body.count, 1)
  const kept = [...page.jar.values()]
  assert.deepEqual((await signOut(page)).body, { success: true })
  assert.deepEqual(
    [...page.jar.keys()].filter((name) => name.startsWith(SESSION_COOKIE)),
    [],
  )
  for (const token of kept)
    assert.equal(await whoIs(actor(t.url, { authorization: `Bearer ${token}` })), undefined)
  const left = (await ada.get('/api/auth/list-sessions')).body as { id: string }[]
  assert.ok(!left.some(({ id }) => id === other?.session.id))

  // Without a session cookie, while a sign-in waits for its second factor.
  const carol = await enrolTotp(t, await t.signUp('Carol'))
  assert.equal((await enter(page, ada)).status, 200)
  const token = page.jar.get(SESSION_COOKIE)
  assert.equal((await enter(page, carol)).body.twoFactorRedirect, true)
  assert.equal((await signOut(page)).status, 200)
  assert.equal(await whoIs(actor(t.url, { authorization: `Bearer ${token}` })), undefined)

  assert.deepEqual(refused(await signOut(page)), [401, 'UNAUTHORIZED'], 'nothing is kept')
  page.jar.set(`${SESSION_COOKIE}_multi-${ada.id}`, kept[0] ?? '')
  assert.deepEqual(refused(await signOut(page)), [401, 'UNAUTHORIZED'], 'what is kept has ended')
})

test('a user who signs in again takes the place of the older session, and a user beyond the limit is not kept', async () => {
  const { page, users } = await shared('Ada', 'Bob', 'Cem')
  const [ada] = users as [User]
  const before = await handleOf(page, ada)
  await enter(page, ada)
  assert.equal((await list(page)).length, 3)
  assert.notEqual(await handleOf(page, ada), before)
  const dora = await t.signUp('Dora')
  await enter(page, dora)
  assert.equal(await whoIs(page), dora.id)
  assert.equal((await list(page)).length, 3)
  assert.equal(await handleOf(page, dora), '')
})

test('a session that has ended is forgotten, and one of a banned user cannot be chosen', async () => {
  const { page, users } = await shared('Ada', 'Bob', 'Cem')
  const [ada, bob, cem] = users as [User, User, User]
  const [handle, banned] = [await handleOf(page, ada), await handleOf(page, bob)]
  await ada.post('/api/auth/revoke-other-sessions')
  await banByOperator(kernel, bob.id, { reason: null, expires: null })
  assert.deepEqual(refused(await setActive(page, handle)), [401, 'INVALID_SESSION_TOKEN'])
  assert.deepEqual(refused(await setActive(page, banned)), [401, 'INVALID_SESSION_TOKEN'])
  assert.deepEqual(
    (await list(page)).map(({ user }) => user.id),
    [cem.id],
  )
  assert.deepEqual(
    [...page.jar.keys()].filter((name) => name.includes('_multi-')),
    [`${SESSION_COOKIE}_multi-${cem.id}`],
  )
  // So is the current one, with the answer that says so.
  await cem.post('/api/auth/revoke-other-sessions')
  assert.equal((await page.get('/api/auth/get-session')).status, 401)
  assert.deepEqual(
    [...page.jar.keys()].filter((name) => name.startsWith(SESSION_COOKIE)),
    [],
  )
})

test('the kept session has the token that it gets by a proof or a change of the password, and lasts as long as its session', async () => {
  const { page, users } = await shared('Ada', 'Bob')
  const [ada, bob] = users as [User, User]
  const same = () =>
    assert.equal(page.jar.get(`${SESSION_COOKIE}_multi-${bob.id}`), page.jar.get(SESSION_COOKIE))
  same()
  assert.equal((await page.post('/api/auth/reauthenticate', { password: PASSWORD })).status, 200)
  same()
  const change = {
    currentPassword: PASSWORD,
    newPassword: 'another good password',
    revokeOtherSessions: true,
  }
  assert.equal((await page.post('/api/auth/change-password', change)).status, 200)
  same()
  t.advance(DAY + 1_000)
  const rolled = await page.get('/api/auth/get-session')
  assert.deepEqual(
    rolled.headers.getSetCookie().map((cookie) => [cookie.split('=')[0], /Max-Age=(\d+)/.exec(cookie)?.[1]]),
    [
      [SESSION_COOKIE, '604800'],
      [`${SESSION_COOKIE}_multi-${bob.id}`, '604800'],
    ],
  )
  await setActive(page, await handleOf(page, ada))
  assert.equal(await whoIs(page), ada.id)
  const short = newBrowser()
  const answer = await enter(short, ada, { rememberMe: false })
  const kept = answer.headers.getSetCookie().filter((cookie) => cookie.startsWith(SESSION_COOKIE))
  assert.deepEqual(
    kept.map((cookie) => cookie.includes('Max-Age')),
    [false, false],
  )
})

test('a sign-in that waits for its second factor ends no session of another user in the browser', async () => {
  const { page, users } = await shared('Ada')
  const [ada] = users as [User]
  const bob = await enrolTotp(t, await t.signUp('Bob'))
  assert.equal((await enter(page, bob)).body.twoFactorRedirect, true)
  assert.equal(page.jar.has(SESSION_COOKIE), false)
  assert.deepEqual(
    (await list(page)).map(({ user }) => user.id),
    [ada.id],
  )
  const code = codeOf(t, bob.secret, 1)
  assert.equal((await page.post('/api/auth/two-factor/verify-totp', { code })).status, 200)
  assert.equal(await whoIs(page), bob.id)
  assert.equal((await list(page)).length, 2)
})

test('a page of a foreign origin changes nothing, with a session cookie or without', async () => {
  const { page, users } = await shared('Ada', 'Bob')
  const [ada, bob] = users as [User, User]
  const sessionToken = await handleOf(page, ada)
  for (const withSession of [true, false]) {
    const cookie = [...page.jar]
      .filter(([name]) => withSession || name !== SESSION_COOKIE)
      .map(([name, value]) => `${name}=${value}`)
      .join('; ')
    for (const path of ['set-active', 'revoke']) {
      const headers = { cookie, origin: 'https://evil.example' }
      const answer = await t.anon.post(`/api/auth/multi-session/${path}`, { sessionToken }, { headers })
      assert.deepEqual(refused(answer), [403, 'INVALID_ORIGIN'])
      assert.equal(answer.headers.get('set-cookie'), null)
    }
  }
  assert.equal(await whoIs(page), bob.id)
})

test('an impersonated session is not kept, and switches to no other', async () => {
  const { page, users } = await shared('Ada', 'Root')
  const [ada, root] = users as [User, User]
  await setRoleByOperator(kernel, root.id, 'admin')
  const handle = await handleOf(page, ada)
  const cem = await t.signUp('Cem')
  assert.equal((await page.post('/api/auth/admin/impersonate-user', { userId: cem.id })).status, 200)
  assert.equal(await whoIs(page), cem.id)
  const listed = await page.get('/api/auth/multi-session/list-device-sessions')
  for (const answer of [listed, await setActive(page, handle), await revoke(page, handle)])
    assert.deepEqual(refused(answer), [403, 'NOT_WHILE_IMPERSONATING'])
  assert.equal((await page.post('/api/auth/admin/stop-impersonating')).status, 200)
  assert.deepEqual(
    (await list(page)).map(({ user }) => user.id),
    [root.id, ada.id],
  )
})

test('the routes and the cookies do not exist unless they are enabled', async () => {
  const off = await testService()
  const ada = await off.signUp('Ada')
  const page = browser(off, { token: '' })
  await page.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  assert.deepEqual(
    [...page.jar.keys()].filter((name) => name.includes('_multi-')),
    [],
  )
  assert.equal((await page.get('/api/auth/multi-session/list-device-sessions')).status, 404)
  for (const path of ['set-active', 'revoke'])
    assert.equal((await page.post(`/api/auth/multi-session/${path}`, { sessionToken: 'x' })).status, 404)
})
