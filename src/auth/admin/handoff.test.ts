import assert from 'node:assert/strict'
import { test } from 'node:test'
import { banByOperator, setRoleByOperator, unbanByOperator } from '#auth/admin/operator.ts'
import { tokenHash } from '#identity/tokens.ts'
import { browser } from '#test/cookie-jar.ts'
import { type Actor, type Answer, actor, PASSWORD, testService, type User } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'
import { cookiesOf } from '#test/second-factor.ts'

const APP = 'https://app.example.com'
const t = await testService({ config: { auth: { trusted_origins: [APP] } } })
const { kernel } = t.service
const { db } = kernel
const SESSION = t.config.session.cookie_name
const SIDE = 'service-auth.admin-session'
const MINUTE = 60_000
const INVALID = [400, 'INVALID_HANDOFF_CODE']

const begin = (who: Actor, { id: userId }: { id: string }, more: object = { handoff: true }) =>
  who.post('/api/auth/admin/impersonate-user', { userId, ...more })
async function codeFor(who: Actor, user: { id: string }): Promise<string> {
  const { status, body, text } = await begin(who, user)
  assert.equal(status, 200, text)
  return body.code
}
const exchange = (code: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  t.anon.post('/api/auth/admin/exchange-handoff', { code }, { headers })
const refused = ({ status, body }: Answer) => [status, body?.code]
const withToken = (token: string) => actor(t.url, { authorization: `Bearer ${token}` })
const statusOf = async (who: Actor) => (await who.get('/api/auth/get-session')).status
const impersonationsOf = (admin: { id: string }) =>
  db.selectFrom('session').selectAll().where('impersonatedBy', '=', admin.id).execute()
const toldOf = (admin: { id: string }) =>
  db
    .selectFrom('auditEvent')
    .select(['action', 'targetId'])
    .where('actorId', '=', admin.id)
    .where('action', 'like', 'user.impersonat%')
    .orderBy('id')
    .execute()

test('a handed-off impersonation begins in the page that exchanges the code, and the admin’s session stays', async () => {
  const [root, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  const page = browser(t, root)
  const begun = await begin(page, ada)
  const { code, expiresAt, user } = begun.body
  assert.deepEqual(Object.keys(begun.body).toSorted(), ['code', 'expiresAt', 'user'])
  assert.equal(user.id, ada.id)
  assert.equal(Date.parse(expiresAt) - kernel.now().getTime() > 55_000, true)
  assert.equal(begun.headers.get('set-auth-token'), null)
  assert.deepEqual([[...page.jar], await impersonationsOf(root)], [[[SESSION, root.token]], []])

  const answer = await exchange(code, { origin: APP, 'user-agent': 'the app' })
  assert.equal(answer.status, 200, answer.text)
  const { session } = answer.body
  assert.deepEqual([session.userId, session.impersonatedBy, answer.body.user.id], [ada.id, root.id, ada.id])
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), 60 * MINUTE)
  assert.equal(session.userAgent, 'the app')
  assert.deepEqual(cookiesOf(answer), { [SESSION]: session.token })
  assert.equal(answer.headers.get('set-auth-token'), session.token)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  const [row] = await impersonationsOf(root)
  assert.deepEqual([row?.id, row?.parentSessionId], [session.id, root.sessionId])

  const app = browser(t, { token: session.token })
  const closed = await app.post('/api/auth/change-password', { currentPassword: 'x', newPassword: PASSWORD })
  assert.deepEqual(refused(closed), [403, 'NOT_WHILE_IMPERSONATING'])
  const stopped = await app.post('/api/auth/admin/stop-impersonating')
  assert.deepEqual([stopped.status, stopped.body.session], [200, null])
  assert.deepEqual([[...app.jar], await statusOf(page)], [[], 200])
  assert.deepEqual(await toldOf(root), [
    { action: 'user.impersonated', targetId: ada.id },
    { action: 'user.impersonation_ended', targetId: ada.id },
  ])
})

test('of 50 parallel exchanges of one code one begins a session', async () => {
  const [root, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  const code = await codeFor(root, ada)
  const answers = await Promise.all(Array.from({ length: 50 }, () => exchange(code)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  const others = answers.filter(({ status }) => status !== 200)
  assert.deepEqual([...new Set(others.map((answer) => refused(answer).join(' ')))], [INVALID.join(' ')])
  assert.equal((await impersonationsOf(root)).length, 1)
  assert.equal((await toldOf(root)).length, 1)
})

test('a code ends after a minute, and when the admin could not begin the impersonation any more', async () => {
  const ends: Readonly<Record<string, (side: { chief: User; ada: User }) => Promise<unknown>>> = {
    'a minute': async () => t.advance(MINUTE + 1_000),
    'sign-out': ({ chief }) => chief.post('/api/auth/sign-out'),
    'a new token': ({ chief }) => chief.post('/api/auth/reauthenticate', { password: PASSWORD }),
    'a new password': ({ chief }) =>
      chief.post('/api/auth/change-password', { currentPassword: PASSWORD, newPassword: 'another good one' }),
    'another role': ({ chief }) => setRoleByOperator(kernel, chief.id, 'user'),
    'a ban of the admin': ({ chief }) => banByOperator(kernel, chief.id, { reason: null, expires: null }),
    'a ban of the user': ({ ada }) => banByOperator(kernel, ada.id, { reason: null, expires: null }),
    'a role of the user': ({ ada }) => setRoleByOperator(kernel, ada.id, 'admin'),
    'the end of the user': ({ ada }) => ada.post('/api/auth/delete-user', { password: PASSWORD }),
    'a ban of the admin that is over': async ({ chief }) => {
      await banByOperator(kernel, chief.id, { reason: null, expires: null })
      await unbanByOperator(kernel, chief.id)
    },
  }
  for (const [name, end] of Object.entries(ends)) {
    const [chief, ada] = [await t.signUp('Chief'), await t.signUp('Ada')]
    await setRoleByOperator(kernel, chief.id, 'admin')
    const code = await codeFor(chief, ada)
    await end({ chief, ada })
    const answer = await exchange(code)
    assert.deepEqual([refused(answer), answer.headers.getSetCookie()], [INVALID, []], name)
    assert.deepEqual([await impersonationsOf(chief), await toldOf(chief)], [[], []], name)
  }
  for (const unknown of ['', 'x', 'A'.repeat(43)]) assert.deepEqual(refused(await exchange(unknown)), INVALID)
})

test('the session of a code ends with that of the admin, and the code is stored as a hash only', async () => {
  const [root, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  const code = await codeFor(root, ada)
  const rows = await db.selectFrom('verification').selectAll().where('userId', '=', root.id).execute()
  assert.deepEqual([rows.length, rows[0]?.valueHash], [1, tokenHash(code)])
  assert.equal(JSON.stringify(rows).includes(code), false)
  const { body } = await exchange(code)
  const who = withToken(body.session.token)
  assert.equal(await statusOf(who), 200)
  await root.post('/api/auth/sign-out')
  assert.equal(await statusOf(who), 401)
})

test('a page of a foreign origin exchanges no code', async () => {
  const [root, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  const code = await codeFor(root, ada)
  const foreign = await exchange(code, { origin: 'https://evil.example' })
  assert.deepEqual([refused(foreign), foreign.headers.getSetCookie()], [[403, 'INVALID_ORIGIN'], []])
  const opaque = await exchange(code, { origin: 'null' })
  assert.deepEqual(refused(opaque), [403, 'MISSING_OR_NULL_ORIGIN'])
  assert.equal((await exchange(code, { origin: APP })).status, 200)
})

test('in the admin’s own browser the admin’s session waits for the end of the impersonation', async () => {
  const [root, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  const page = browser(t, root)
  const code = await codeFor(page, ada)
  const { status, body } = await page.post('/api/auth/admin/exchange-handoff', { code })
  assert.deepEqual([status, page.jar.get(SESSION), page.jar.get(SIDE)], [200, body.session.token, root.token])

  // One impersonation after the other: the refused exchange leaves the code as it is.
  const another = await codeFor(root, await createPerson(t))
  const second = await page.post('/api/auth/admin/exchange-handoff', { code: another })
  assert.deepEqual(refused(second), [403, 'NOT_WHILE_IMPERSONATING'])
  assert.equal((await page.post('/api/auth/admin/stop-impersonating')).status, 200)
  assert.deepEqual([...page.jar], [[SESSION, root.token]])
  assert.equal((await exchange(another)).status, 200)
})

test('a session that the page has already gets nothing, and does not stand for the admin in the audit trail', async () => {
  const [root, ada, eve] = [
    await createPerson(t, { role: 'admin' }),
    await createPerson(t),
    await createPerson(t),
  ]
  const page = browser(t, eve)
  const code = await codeFor(root, ada)
  const { body } = await page.post('/api/auth/admin/exchange-handoff', { code })
  assert.deepEqual([...page.jar], [[SESSION, body.session.token]])
  assert.equal((await toldOf(root)).length, 1)
  assert.deepEqual(await toldOf(eve), [])
})

test('a handoff asks for what the impersonation asks for, and counts like one', async () => {
  const rate_limits = { enabled: true, rules: { impersonation: { requests: 2 } } }
  const limited = await testService({ controlUrl: t.controlUrl, config: { rate_limits } })
  const [root, other, ada] = [
    await createPerson(t, { role: 'admin' }),
    await createPerson(t, { role: 'admin' }),
    await createPerson(t),
  ]
  assert.deepEqual(refused(await begin(root, other)), [403, 'YOU_CANNOT_IMPERSONATE_ADMINS'])
  assert.deepEqual(refused(await begin(ada, root)), [403, 'YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS'])
  assert.deepEqual(refused(await begin(root, { id: root.sessionId })), [404, 'USER_NOT_FOUND'])
  const at = actor(limited.url, { authorization: `Bearer ${other.token}` })
  const statuses = [await begin(at, ada), await begin(at, ada, {}), await begin(at, ada)]
  assert.deepEqual(
    statuses.map(({ status }) => status),
    [200, 200, 429],
  )
})

test('without handoff, or with false, the session begins at once', async () => {
  const [root, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  for (const more of [{}, { handoff: false }, { handoff: 'false' }]) {
    const page = browser(t, root)
    const { body } = await begin(page, ada, more)
    assert.deepEqual(Object.keys(body).toSorted(), ['session', 'user'])
    assert.deepEqual([page.jar.get(SESSION), page.jar.get(SIDE)], [body.session.token, root.token])
  }
})
