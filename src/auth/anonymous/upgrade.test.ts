import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { signInAnonymously } from '#test/anonymous.ts'
import {
  type Actor,
  type Answer,
  actor,
  BROWSER,
  confirm,
  endpointOf,
  linkIn,
  PASSWORD,
  testService,
  type User,
} from '#test/harness.ts'
import { codeIn } from '#test/mailed-codes.ts'
import { cookiesOf, SESSION_COOKIE } from '#test/second-factor.ts'

const t = await testService({
  config: {
    auth: { anonymous: { enabled: true }, email_otp: { enabled: true }, one_time_token: { enabled: true } },
  },
})
const { kernel } = t.service
const { db } = kernel
const AUTH = '/api/auth'
const NEW = 'another horse staple'
const codeOf = ({ status, body }: Answer) => [status, body?.code]

let count = 0
const newAddress = () => `ada-${++count}@example.com`
const signUp = (who: Actor, email: string, more = {}) =>
  who.post(`${AUTH}/sign-up/email`, { name: 'Ada', email, password: PASSWORD, ...more })
const signIn = (email: string, password = PASSWORD) =>
  t.anon.post(`${AUTH}/sign-in/email`, { email, password })
const me = async (who: Actor) => (await who.get(`${AUTH}/get-session`)).body?.user
async function mailTo(email: string): Promise<string> {
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}`))
  assert.ok(mail, `no mail to ${email}`)
  return mail
}
/** The cookies of the session and of the sign-up, as the browser has them. */
const BROWSER_MARK = 'service-auth.sign-up'
function inBrowser({ token }: User, signedUp?: Answer): Actor {
  const mark = signedUp && cookiesOf(signedUp)[BROWSER_MARK]
  const marked = mark === undefined ? '' : `; ${BROWSER_MARK}=${encodeURIComponent(mark)}`
  return actor(t.url, { cookie: `${SESSION_COOKIE}=${token}${marked}` })
}
/** The session that an upgrade has started. */
const renewed = ({ headers }: Answer): Actor =>
  actor(t.url, { authorization: `Bearer ${headers.get('set-auth-token')}` })
/** Another session of the same user. */
async function otherSession(who: User): Promise<Actor> {
  const { body } = await who.get(`${AUTH}/one-time-token/generate`)
  const { token } = (await t.anon.post(`${AUTH}/one-time-token/verify`, { token: body.token })).body.session
  return actor(t.url, { authorization: `Bearer ${token}` })
}

test('a sign-up in an anonymous session gives its user the address and the password when the link is followed, not before', async () => {
  const who = await signInAnonymously(t)
  const email = newAddress()
  const asked = await signUp(who, email, { username: `ada_${count}`, callbackURL: '/app' })
  assert.deepEqual([asked.status, asked.body.token, asked.body.user.id], [200, null, who.id])
  assert.partialDeepStrictEqual(await me(who), { name: 'Ada', email: who.email, isAnonymous: true })
  assert.deepEqual(codeOf(await signIn(email)), [401, 'INVALID_EMAIL_OR_PASSWORD'])
  const byName = { username: `ada_${count}`, password: PASSWORD }
  assert.equal((await t.anon.post(`${AUTH}/sign-in/username`, byName)).status, 401)
  assert.deepEqual(await db.selectFrom('account').select('id').where('userId', '=', who.id).execute(), [])

  const done = await confirm(inBrowser(who, asked), linkIn(await mailTo(email)))
  assert.deepEqual([done.status, done.headers.get('location')], [303, '/app'])
  const user = { id: who.id, email, emailVerified: true, isAnonymous: false, name: 'Ada' }
  assert.partialDeepStrictEqual(await me(renewed(done)), user)
  assert.equal(await me(who), undefined, 'a new session is in the place of the one that asked')
  assert.partialDeepStrictEqual((await signIn(email)).body.user, user)
  assert.equal((await t.anon.post(`${AUTH}/sign-in/username`, byName)).body.user.id, who.id)
})

test('the link in another browser asks for the password of that sign-up, and starts no session', async () => {
  const who = await signInAnonymously(t)
  const email = newAddress()
  await signUp(who, email)
  const link = linkIn(await mailTo(email))
  const page = await t.anon.get(link, { headers: BROWSER })
  assert.match(page.text, /name="password"/)
  const token = new URL(link, t.url).searchParams.get('token')
  const follow = (values: object) => t.anon.post(`${AUTH}/verify-email`, { token, ...values })
  assert.deepEqual(codeOf(await follow({})), [400, 'PASSWORD_REQUIRED'])
  assert.deepEqual(codeOf(await follow({ password: NEW })), [400, 'INVALID_PASSWORD'])
  assert.equal((await me(who)).isAnonymous, true)
  const followed = await follow({ password: PASSWORD })
  assert.partialDeepStrictEqual(followed.body.user, { id: who.id, email })
  assert.deepEqual([followed.headers.get('set-auth-token'), await me(who)], [null, undefined])
  assert.equal((await signIn(email)).status, 200)
})

test('the owner of a mailbox whom a stranger has signed up gets the account alone, by a password of their own', async () => {
  const stranger = await signInAnonymously(t)
  const email = newAddress()
  await signUp(stranger, email)
  const done = await confirm(t.anon, linkIn(await mailTo(email)), { newPassword: NEW })
  assert.equal(done.status, 200, done.text)
  assert.equal(await me(stranger), undefined)
  assert.equal((await signIn(email)).status, 401)
  assert.equal((await signIn(email, NEW)).body.user.id, stranger.id)
})

test('a link that is followed without a page leaves the password unusable and the session ended', async () => {
  const who = await signInAnonymously(t)
  const email = newAddress()
  await signUp(who, email)
  assert.equal((await t.anon.get(endpointOf(linkIn(await mailTo(email))))).status, 200)
  assert.equal(await me(who), undefined)
  assert.deepEqual(codeOf(await signIn(email)), [403, 'PASSWORD_CHANGE_REQUIRED'])
})

test('a password that another has chosen in the same session does not become that of who clicks, by link or by code', async () => {
  const who = await signInAnonymously(t)
  const email = newAddress()
  const own = inBrowser(who, await signUp(who, email))
  await signUp(who, email, { password: NEW })
  const link = linkIn(await mailTo(email))
  assert.match((await own.get(link, { headers: BROWSER })).text, /name="password"/)
  const done = await confirm(own, link, { newPassword: 'a third horse battery' })
  assert.partialDeepStrictEqual(await me(renewed(done)), { id: who.id, email })
  assert.equal((await signIn(email, NEW)).status, 401)
  assert.equal((await signIn(email, 'a third horse battery')).status, 200)

  const byCode = await signInAnonymously(t)
  const newEmail = newAddress()
  await signUp(byCode, newEmail, { password: NEW })
  const otp = codeIn(await mailTo(newEmail))
  const changed = await byCode.post(`${AUTH}/email-otp/change-email`, { newEmail, otp })
  assert.partialDeepStrictEqual(await me(renewed(changed)), { id: byCode.id, email: newEmail })
  assert.deepEqual(codeOf(await signIn(newEmail, NEW)), [403, 'PASSWORD_CHANGE_REQUIRED'])
})

test('no device that was known before the upgrade is known after it', async () => {
  const who = await signInAnonymously(t)
  const devices = () => db.selectFrom('knownDevice').select('id').where('userId', '=', who.id).execute()
  const [former] = await devices()
  const email = newAddress()
  await who.post(`${AUTH}/change-email`, { newEmail: email })
  await confirm(inBrowser(who), linkIn(await mailTo(email)))
  const known = await devices()
  assert.equal(known.length, 1)
  assert.notEqual(known[0]?.id, former?.id)
})

test('an address with an account is not shown and not merged; its owner gets a notice', async () => {
  const owner = await t.signUp('Bob')
  await confirm(t.anon, linkIn(await verificationOf(owner)), { password: PASSWORD })
  const [who, other] = [await signInAnonymously(t), await signInAnonymously(t)]
  await t.mails()
  const [taken, free] = [await signUp(who, owner.email), await signUp(other, newAddress())]
  const shape = ({ status, body, headers }: Answer) => [
    status,
    Object.keys(body),
    body.token,
    body.user.isAnonymous,
    headers.getSetCookie().length,
  ]
  assert.deepEqual(shape(taken), shape(free))
  const mails = (await t.mails()).filter((mail) => mail.includes(`To: ${owner.email}`))
  assert.equal(mails.length, 1)
  assert.match(mails[0] ?? '', /^Subject: You already have an account/m)
  assert.partialDeepStrictEqual(await me(who), { id: who.id, isAnonymous: true })
  assert.equal((await signIn(owner.email)).body.user.id, owner.id)
})

async function verificationOf({ email }: User): Promise<string> {
  await t.mails()
  await t.anon.post(`${AUTH}/send-verification-email`, { email })
  return mailTo(email)
}

test('a newer sign-up replaces the one before, with its address and its password', async () => {
  const who = await signInAnonymously(t)
  const [first, second] = [newAddress(), newAddress()]
  await signUp(who, first)
  const dead = linkIn(await mailTo(first))
  const newer = await signUp(who, second, { password: NEW })
  const link = linkIn(await mailTo(second))
  const answer = await inBrowser(who).get(endpointOf(dead))
  assert.deepEqual(codeOf(answer), [401, 'INVALID_TOKEN'])
  await confirm(inBrowser(who, newer), link)
  assert.deepEqual([(await signIn(second, NEW)).status, (await signIn(first)).status], [200, 401])
})

test('change-email alone adds the address, by its link or its code, and no password', async () => {
  const who = await signInAnonymously(t)
  const email = newAddress()
  assert.equal((await who.post(`${AUTH}/change-email`, { newEmail: email })).status, 200)
  const done = await confirm(inBrowser(who), linkIn(await mailTo(email)))
  assert.partialDeepStrictEqual(await me(renewed(done)), { id: who.id, email, isAnonymous: false })
  const byCode = await signInAnonymously(t)
  const newEmail = newAddress()
  assert.equal((await byCode.post(`${AUTH}/email-otp/request-email-change`, { newEmail })).status, 200)
  const otp = codeIn(await mailTo(newEmail))
  const changed = await byCode.post(`${AUTH}/email-otp/change-email`, { newEmail, otp })
  assert.equal(changed.status, 200)
  assert.partialDeepStrictEqual(await me(renewed(changed)), {
    id: byCode.id,
    email: newEmail,
    isAnonymous: false,
  })
})

test('the upgrade ends every session of before, and is told once, to the trail and to webhooks', async () => {
  const who = await signInAnonymously(t)
  const other = await otherSession(who)
  assert.equal((await me(other)).id, who.id)
  const emitted: string[] = []
  kernel.events.subscribe((name) => void emitted.push(name))
  const email = newAddress()
  const asked = await signUp(who, email)
  const done = await confirm(inBrowser(who, asked), linkIn(await mailTo(email)))
  assert.equal((await me(renewed(done))).isAnonymous, false)
  assert.deepEqual([await me(who), await me(other)], [undefined, undefined])
  const upgraded = (
    await db.selectFrom('auditEvent').selectAll().where('targetId', '=', who.id).execute()
  ).filter(({ action }) => action === 'user.upgraded')
  assert.deepEqual(
    upgraded.map(({ actorId, details }) => [actorId, details]),
    [[who.id, { by: 'email', sessionsEnded: 2 }]],
  )
  assert.deepEqual(emitted, ['auth_user_upgraded', 'auth_user_signed_in'])
})

test('after the upgrade the session has to show a proof, as any other', async () => {
  const who = await signInAnonymously(t)
  const email = newAddress()
  const asked = await signUp(who, email)
  const own = renewed(await confirm(inBrowser(who, asked), linkIn(await mailTo(email))))
  const added = await own.post(`${AUTH}/two-factor/enable`)
  assert.deepEqual(codeOf(added), [403, 'SESSION_NOT_FRESH'], added.text)
  assert.deepEqual(added.body.details.accepts, ['password'])
  assert.equal((await own.post(`${AUTH}/reauthenticate`, { password: PASSWORD })).status, 200)
})

test('who becomes a known user has every required field and the defaults, as any new user', async () => {
  const fields = { company: { required: true }, plan: { default: 'free', input: false } }
  const other = await testService({ config: { auth: { anonymous: { enabled: true }, user: { fields } } } })
  const who = await signInAnonymously(other)
  const email = newAddress()
  const change = () => who.post(`${AUTH}/change-email`, { newEmail: email })
  assert.deepEqual(codeOf(await change()), [400, 'MISSING_FIELD'])
  assert.equal((await who.post(`${AUTH}/update-user`, { company: 'ACME' })).status, 200)
  assert.equal((await change()).status, 200)
  const mail = (await other.mails()).findLast((one) => one.includes(`To: ${email}`)) ?? ''
  const done = await confirm(actor(other.url, { cookie: `${SESSION_COOKIE}=${who.token}` }), linkIn(mail))
  const own = actor(other.url, { authorization: `Bearer ${done.headers.get('set-auth-token')}` })
  assert.partialDeepStrictEqual(await me(own), { id: who.id, email, company: 'ACME', plan: 'free' })
})

test('who gets an address from an admin has every required field and the defaults, too', async () => {
  const [fields, { controlUrl }] = [{ company: { required: true }, plan: { default: 'free' } }, t]
  const config = { auth: { anonymous: { enabled: true }, user: { fields } } }
  const ruth = await t.signUp('Ruth')
  await setRoleByOperator(t.service.kernel, ruth.id, 'admin')
  const other = await testService({ controlUrl, config })
  const [who, admin] = [await signInAnonymously(other), actor(other.url, ruth.headers)]
  const email = newAddress()
  const give = (data: object) => admin.post(`${AUTH}/admin/update-user`, { userId: who.id, data })
  assert.deepEqual(codeOf(await give({ email })), [400, 'MISSING_FIELD'])
  assert.equal((await me(who)).isAnonymous, true)
  const { body } = await give({ email, company: 'ACME' })
  assert.partialDeepStrictEqual(body, { email, isAnonymous: false, company: 'ACME', plan: 'free' })
})

test('the password rules and the switch of sign-up hold, and a known user signs up as before', async () => {
  const who = await signInAnonymously(t)
  assert.deepEqual(codeOf(await signUp(who, newAddress(), { password: 'short' })), [
    400,
    'PASSWORD_TOO_SHORT',
  ])
  assert.deepEqual(codeOf(await signUp(who, 'nobody')), [400, 'INVALID_EMAIL'])
  const taken = await t.signUp('Cem')
  await taken.post(`${AUTH}/update-user`, { username: 'cem_cem' })
  const conflict = await signUp(who, newAddress(), { username: 'CEM_cem' })
  assert.deepEqual(codeOf(conflict), [409, 'USERNAME_IS_ALREADY_TAKEN'])
  const closed = await testService({
    controlUrl: t.controlUrl,
    config: { auth: { anonymous: { enabled: true }, email_password: { enable_signup: false } } },
  })
  const own = actor(closed.url, who.headers)
  assert.deepEqual(codeOf(await signUp(own, newAddress())), [403, 'SIGN_UP_DISABLED'])
  const asked = await own.post(`${AUTH}/change-email`, { newEmail: newAddress() })
  assert.deepEqual(codeOf(asked), [403, 'SIGN_UP_DISABLED'])
  const other = await signUp(taken, newAddress())
  assert.notEqual(other.body.user.id, taken.id)
})
