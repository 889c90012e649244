import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { setPasswordByOperator } from '#auth/password/password.ts'
import { signInAnonymously } from '#test/anonymous.ts'
import { type Answer, type Ask, actor, PASSWORD, testService, type User } from '#test/harness.ts'
import { cookiesOf, SESSION_COOKIE } from '#test/second-factor.ts'

const t = await testService({
  config: {
    auth: {
      anonymous: { enabled: true },
      one_time_token: { enabled: true },
      device: { clients: { tv: {} } },
    },
  },
})
const plain = await testService()
const { kernel } = t.service
const { db } = kernel
const AUTH = '/api/auth'
const codeOf = ({ status, body }: Answer) => [status, body?.code]
const REFUSED = [403, 'USER_IS_ANONYMOUS']
const userOf = ({ id }: Pick<User, 'id'>) =>
  db.selectFrom('user').selectAll().where('id', '=', id).executeTakeFirst()
async function admin(): Promise<User> {
  const user = await t.signUp('Ruth')
  await setRoleByOperator(kernel, user.id, 'admin')
  return user
}

test('anonymous sign-in is off by default, and sign-up looks at no session then', async () => {
  for (const path of ['sign-in/anonymous', 'delete-anonymous-user'])
    assert.equal((await plain.anon.post(`${AUTH}/${path}`)).status, 404)
  const access = (service: typeof t) =>
    service.service.book.entries().find(({ path }) => path === `${AUTH}/sign-up/email`)?.access
  assert.deepEqual([access(plain), access(t)], ['open', 'open (knows a session)'])
})

test('a request without anything adds a user with a session, and the same session adds no second one', async () => {
  const answer = await t.anon.post(`${AUTH}/sign-in/anonymous`)
  const { token, user } = answer.body
  assert.deepEqual([answer.status, user.name, user.isAnonymous], [200, 'Anonymous', true])
  assert.deepEqual([user.email, user.emailVerified], [`${user.id}@anonymous.invalid`, false])
  assert.equal(answer.headers.get('set-auth-token'), token)
  assert.equal(cookiesOf(answer)[SESSION_COOKIE], token)
  const own = actor(t.url, { authorization: `Bearer ${token}` })
  const session = await own.get(`${AUTH}/get-session`)
  assert.partialDeepStrictEqual(session.body.user, { id: user.id, isAnonymous: true, role: 'user' })
  const again = await own.post(`${AUTH}/sign-in/anonymous`)
  assert.deepEqual(codeOf(again), [400, 'ANONYMOUS_USERS_CANNOT_SIGN_IN_AGAIN_ANONYMOUSLY'])
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get(`${AUTH}/get-session`)).body.user.isAnonymous, false)
  const other = await ada.post(`${AUTH}/sign-in/anonymous`)
  assert.deepEqual([other.status, other.body.user.isAnonymous], [200, true])
})

test('the audit trail tells how the user came, and the claims of a token that the user is anonymous', async () => {
  const who = await signInAnonymously(t)
  const rows = await db
    .selectFrom('auditEvent')
    .select(['action', 'actorId', 'details'])
    .where('targetId', '=', who.id)
    .orderBy('id')
    .execute()
  assert.deepEqual(
    rows.map(({ action, actorId }) => [action, actorId]),
    [
      ['user.created', who.id],
      ['user.signed_in', who.id],
    ],
  )
  assert.deepEqual(rows[0]?.details, { role: 'user', anonymous: true })
  const { body } = await who.get(`${AUTH}/token`)
  assert.partialDeepStrictEqual(decodeJwt(body.token), { sub: who.id, role: 'user', is_anonymous: true })
})

test('no request can name the placeholder: not to sign in, sign up, reset, get mail or take it', async () => {
  const who = await signInAnonymously(t)
  const ada = await t.signUp('Ada')
  await t.mails()
  const named = (email: string): [string, object, Ask?][] => [
    ['/sign-in/email', { email, password: PASSWORD }],
    ['/sign-up/email', { name: 'Eve', email, password: PASSWORD }],
    ['/forget-password', { email }],
    ['/send-verification-email', { email }],
    ['/change-email', { newEmail: email }, { headers: { ...ada.headers } }],
  ]
  for (const email of [who.email, ` ${who.email.toUpperCase()}`, 'other@anonymous.invalid'])
    for (const [path, body, more] of named(email))
      assert.deepEqual(codeOf(await t.anon.post(AUTH + path, body, more)), [400, 'INVALID_EMAIL'], path)
  assert.deepEqual(await t.mails(), [])
})

test('an anonymous user gets no password, factor, role, organization or device', async () => {
  const who = await signInAnonymously(t)
  const ruth = await admin()
  const { body: codes } = await t.anon.post(`${AUTH}/device/code`, { client_id: 'tv' })
  const data = { name: 'A', slug: `a-${who.id}` }
  const answers = {
    setPassword: await who.post(`${AUTH}/set-password`, { newPassword: PASSWORD }),
    totp: await who.post(`${AUTH}/two-factor/enable`),
    otp: await who.post(`${AUTH}/two-factor/enable`, { method: 'otp' }),
    organization: await who.post(`${AUTH}/organization/create`, data),
    owner: await ruth.post(`${AUTH}/organization/create`, { ...data, userId: who.id }),
    inCapitals: await ruth.post(`${AUTH}/organization/create`, { ...data, userId: who.id.toUpperCase() }),
    device: await who.post(`${AUTH}/device/approve`, { userCode: codes.user_code }),
    role: await ruth.post(`${AUTH}/admin/set-role`, { userId: who.id, role: 'admin' }),
    password: await ruth.post(`${AUTH}/admin/set-user-password`, { userId: who.id, newPassword: PASSWORD }),
    verified: await ruth.post(`${AUTH}/admin/update-user`, { userId: who.id, data: { emailVerified: true } }),
  }
  for (const [name, answer] of Object.entries(answers)) assert.deepEqual(codeOf(answer), REFUSED, name)
  await assert.rejects(setRoleByOperator(kernel, who.id, 'admin'), { code: 'USER_IS_ANONYMOUS' })
  await assert.rejects(setPasswordByOperator(kernel, who.id, PASSWORD), { code: 'USER_IS_ANONYMOUS' })
  const asked = await who.post(`${AUTH}/reauthenticate`, { password: PASSWORD })
  assert.equal(asked.status >= 400 && asked.status < 500, true, asked.text)
  const row = await userOf(who)
  assert.deepEqual([row?.role, row?.isAnonymous, row?.twoFactorEnabled], ['user', true, false])
  assert.deepEqual(await db.selectFrom('account').select('id').where('userId', '=', who.id).execute(), [])
})

test('the database refuses an anonymous user with an address, a role or a factor, whatever the statement', async () => {
  const { id } = await signInAnonymously(t)
  for (const change of [
    { email: 'eve@example.com' },
    { emailVerified: true },
    { emailProvenAt: new Date() },
    { role: 'admin' },
    { twoFactorEnabled: true },
  ])
    await assert.rejects(db.updateTable('user').set(change).where('id', '=', id).execute(), {
      constraint: 'user_anonymous_has_nothing',
    })
})

test('auth.admin.user_ids makes no admin of an anonymous user', async () => {
  const who = await signInAnonymously(t)
  const naming = await testService({
    controlUrl: t.controlUrl,
    config: {
      auth: {
        anonymous: { enabled: true },
        admin: { user_ids: [who.id], roles: { support: { user: ['update', 'set-email'] } } },
      },
    },
  })
  const own = actor(naming.url, who.headers)
  assert.equal((await own.get(`${AUTH}/admin/list-users`)).status, 403)
  // Nor does somebody with less, by an address.
  const sue = await naming.signUp('Sue')
  await setRoleByOperator(naming.service.kernel, sue.id, 'support')
  const data = { email: `taken-${who.id}@example.com` }
  const given = await sue.post(`${AUTH}/admin/update-user`, { userId: who.id, data })
  assert.deepEqual(codeOf(given), [403, 'YOU_ARE_NOT_ALLOWED_TO_CHANGE_USERS_ROLE'])
})

test('an admin filters and sorts by isAnonymous, may impersonate and ban, and gives an address', async () => {
  const [who, ruth] = [await signInAnonymously(t), await admin()]
  const filter = (value: boolean) =>
    ruth.get(`${AUTH}/admin/list-users?filterField=isAnonymous&filterValue=${value}&limit=500`)
  const ids = ({ body }: Answer) => body.users.map(({ id }: User) => id)
  assert.ok(ids(await filter(true)).includes(who.id))
  assert.ok(!ids(await filter(true)).includes(ruth.id))
  assert.ok(!ids(await filter(false)).includes(who.id))
  assert.equal((await ruth.post(`${AUTH}/admin/impersonate-user`, { userId: who.id })).status, 200)
  const data = { email: `new-${who.id}@example.com` }
  const changed = await ruth.post(`${AUTH}/admin/update-user`, { userId: who.id, data })
  assert.equal(changed.status, 200, changed.text)
  assert.partialDeepStrictEqual(changed.body, { id: who.id, email: data.email, isAnonymous: false })
  assert.equal((await who.get(`${AUTH}/get-session`)).status, 401, 'as by every other upgrade')
  const banned = await signInAnonymously(t)
  assert.equal((await ruth.post(`${AUTH}/admin/ban-user`, { userId: banned.id })).status, 200)
  assert.equal((await banned.get(`${AUTH}/get-session`)).status, 401)
})

test('an anonymous user deletes itself, at once and without a mail; another user does not so', async () => {
  for (const path of ['delete-anonymous-user', 'delete-user']) {
    const who = await signInAnonymously(t)
    const answer = await who.post(`${AUTH}/${path}`)
    assert.deepEqual([answer.status, answer.body.success], [200, true], answer.text)
    assert.equal(cookiesOf(answer)[SESSION_COOKIE], '')
    assert.equal(await userOf(who), undefined)
    assert.equal((await who.get(`${AUTH}/get-session`)).status, 401)
  }
  const ada = await t.signUp('Ada')
  assert.deepEqual(codeOf(await ada.post(`${AUTH}/delete-anonymous-user`)), [403, 'USER_IS_NOT_ANONYMOUS'])
  assert.equal((await ada.get(`${AUTH}/get-session`)).status, 200)
  assert.deepEqual(await t.mails(), [])
})

test('a one-time token carries the anonymous session into another browser', async () => {
  const who = await signInAnonymously(t)
  const { body } = await who.get(`${AUTH}/one-time-token/generate`)
  const verified = await t.anon.post(`${AUTH}/one-time-token/verify`, { token: body.token })
  assert.partialDeepStrictEqual(verified.body.user, { id: who.id, isAnonymous: true })
})

test('anonymous sign-ins have a limit of their own for each address, and policies of addresses let them in', async () => {
  const limited = await testService({
    config: {
      auth: { anonymous: { enabled: true }, email_password: { require_email_verification: true } },
      rate_limits: { enabled: true, rules: { anonymous: { requests: 3 }, sign_up: { requests: 1 } } },
    },
  })
  const statuses = await Promise.all(
    Array.from({ length: 10 }, async () => (await limited.anon.post(`${AUTH}/sign-in/anonymous`)).status),
  )
  assert.deepEqual(statuses.toSorted(), [200, 200, 200, ...Array(7).fill(429)])
  const users = await limited.service.kernel.db.selectFrom('user').select('id').execute()
  assert.equal(users.length, 3)
})

test('where there is a captcha, everyone solves it: one session does not add any number of users', async () => {
  const asking = await testService({
    controlUrl: t.controlUrl,
    config: { auth: { anonymous: { enabled: true }, captcha: { provider: 'altcha' } } },
  })
  const [who, ada] = [await signInAnonymously(t), await t.signUp('Ada')]
  const sent = { name: 'Ada', email: 'captcha@example.com', password: PASSWORD }
  for (const headers of [{}, who.headers, ada.headers])
    for (const [path, body] of [
      ['sign-in/anonymous', {}],
      ['sign-up/email', sent],
    ] as const) {
      const answer = await asking.anon.post(`${AUTH}/${path}`, body, { headers: { ...headers } })
      assert.deepEqual(codeOf(answer), [400, 'MISSING_RESPONSE'], path)
    }
})
