import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthenticator } from '#test/authenticator.ts'
import { type Actor, type Answer, actor, PASSWORD, testClock, testService, type User } from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { codeOf, enrolTotp, insertFactor, secretIn, signedInAs } from '#test/second-factor.ts'
import { setRoleByOperator } from '../admin/operator.ts'

const t = await testService({
  clock: testClock({ isStopped: true }),
  config: { auth: { two_factor: { required_for: ['admin'] } } },
})
const { kernel } = t.service
const passkeys = ceremoniesOf(t)
const AUTH = '/api/auth'
const MINUTE = 60_000

const makeAdmin = ({ id }: User) => setRoleByOperator(kernel, id, 'admin')
const newAdmin = async () => {
  const ada = await t.signUp('Ada')
  await makeAdmin(ada)
  return ada
}
const withToken = (token: string): Actor => actor(t.url, { authorization: `Bearer ${token}` })
const signIn = (email: string, password = PASSWORD) => signedInAs(t, email, password)
const enable = (who: Actor, more = {}) =>
  who.post(`${AUTH}/two-factor/enable`, { password: PASSWORD, ...more })
const said = ({ status, body }: Answer): string => `${status} ${body?.code ?? 'OK'}`
/** The answer of a route that a restricted session does not open. */
const opens = async (who: Actor) => said(await who.get(`${AUTH}/list-sessions`))
const OPEN = '200 OK'
const CLOSED = '403 TWO_FACTOR_REQUIRED'
const factorsOf = async ({ id }: User) => {
  const rows = (table: 'passkey' | 'twoFactor') =>
    kernel.db.selectFrom(table).select('id').where('userId', '=', id).execute()
  return (await Promise.all([rows('passkey'), rows('twoFactor')])).flat().length
}

test('a session that lacks the required second factor opens only what leads to one, from the moment of the new role', async () => {
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get('/api/auth/list-sessions')).status, 200)
  await setRoleByOperator(kernel, ada.id, 'admin')
  for (const [method, path] of [
    ['GET', '/api/auth/list-sessions'],
    ['POST', '/api/auth/update-user'],
    ['POST', '/api/auth/revoke-sessions'],
  ] as const) {
    const refused = await ada.send(method, path, { ...(method === 'POST' && { body: { name: 'x' } }) })
    assert.deepEqual([refused.status, refused.body.code], [403, 'TWO_FACTOR_REQUIRED'], path)
  }
  assert.equal((await ada.get('/api/auth/get-session')).body.user.role, 'admin')
  assert.equal((await ada.post('/api/auth/set-password', { newPassword: 'another password' })).status, 400)
  assert.equal((await ada.post('/api/auth/sign-out')).status, 200)
})

test('a session by a passkey with user verification satisfies the requirement, and one without does not', async () => {
  const { user, authenticator } = await passkeys.newUser()
  await makeAdmin(user)
  for (const [userVerified, expected] of [
    [false, CLOSED],
    [true, OPEN],
  ] as const) {
    const { body } = await passkeys.signIn(authenticator, { userVerified })
    assert.equal(await opens(withToken(body.token)), expected)
  }
})

test("the password alone does not open an admin's account whose factor is a passkey", async () => {
  const { user: ada, authenticator } = await passkeys.newUser()
  await makeAdmin(ada)
  const thief = await signIn(ada.email)
  const before = await factorsOf(ada)
  await t.mails()
  assert.equal(said(await enable(thief)), CLOSED)
  assert.equal(said(await enable(thief, { method: 'otp' })), CLOSED)
  assert.equal(said(await passkeys.creationOptions(thief)), CLOSED)
  assert.equal(said(await thief.post(`${AUTH}/set-password`, { newPassword: 'of the thief' })), CLOSED)
  assert.equal(await opens(thief), CLOSED)
  assert.deepEqual([await factorsOf(ada), await t.mails()], [before, []])

  const options = await passkeys.requestOptions(thief)
  assert.equal(options.body.allowCredentials.length, 1, 'the passkey that is there is asked for')
  assert.equal(await opens(withToken((await passkeys.signIn(authenticator)).body.token)), OPEN)
})

test('a factor that a restricted session has begun is worth nothing once the owner has another one', async () => {
  const ada = await newAdmin()
  const thief = await signIn(ada.email)
  const { body: begun } = await enable(thief)
  const { body: options } = await passkeys.creationOptions(thief)
  const authenticator = createAuthenticator()
  // Registered without ending the thief's session, as before the role.
  await insertPasskeyOf(ada)
  const code = codeOf(t, secretIn(begun.totpURI))
  assert.equal(said(await thief.post(`${AUTH}/two-factor/verify-totp`, { code })), CLOSED)
  const response = authenticator.create(options, kernel.publicUrl())
  const attested = { response, challengeId: options.challengeId }
  assert.equal(said(await passkeys.verify('registration', thief, attested)), CLOSED)
  assert.equal(await opens(thief), CLOSED)
})

test("the owner's enrolment elsewhere does not promote a thief's session", async () => {
  const ada = await newAdmin()
  const thief = await signIn(ada.email)
  assert.equal(await opens(thief), CLOSED)
  const secret = await insertFactor(t, ada)
  assert.equal(await opens(thief), CLOSED)
  assert.equal(said(await enable(thief)), CLOSED, 'nor does it replace the factor')
  // A code of the factor does, in that session.
  assert.equal((await thief.post(`${AUTH}/two-factor/verify-totp`, { code: codeOf(t, secret) })).status, 200)
  assert.equal(await opens(thief), OPEN)
})

test('a factor of an account that the session saw without one is not replaced after the factor is gone', async () => {
  const ada = await newAdmin()
  await insertFactor(t, ada)
  const { body } = await t.anon.post(`${AUTH}/sign-in/email`, { email: ada.email, password: PASSWORD })
  assert.equal(body.twoFactorRedirect, true)
  await kernel.db.deleteFrom('twoFactor').where('userId', '=', ada.id).execute()
  await kernel.db.updateTable('user').set({ twoFactorEnabled: false }).where('id', '=', ada.id).execute()
  await kernel.coherence.settle()
  // Its user had a factor when it began.
  const thief = await signIn(ada.email)
  const userHad = ['password', 'totp']
  await kernel.db.updateTable('session').set({ userHad }).where('userId', '=', ada.id).execute()
  await kernel.coherence.settle()
  assert.equal(said(await enable(thief)), CLOSED)
  const again = await signIn(ada.email)
  assert.equal((await enable(again)).status, 200, 'a new sign-in proves the password again')
})

test('a user without any factor enrols within ten minutes of the proof, and after that signs in again', async () => {
  const ada = await newAdmin()
  t.advance(10 * MINUTE + 1)
  assert.equal(said(await enable(ada)), '403 SESSION_NOT_FRESH')
  assert.equal(said(await passkeys.creationOptions(ada)), '403 SESSION_NOT_FRESH')
  const again = await signIn(ada.email)
  t.advance(10 * MINUTE - 1_000)
  const { body: begun } = await enable(again)
  // The password in that body was a proof.
  t.advance(10 * MINUTE + 1)
  const confirm = (who: Actor, { totpURI }: { readonly totpURI: string }) =>
    who.post(`${AUTH}/two-factor/verify-totp`, { code: codeOf(t, secretIn(totpURI)) })
  assert.equal(said(await confirm(again, begun)), '403 SESSION_NOT_FRESH')
  const third = await signIn(ada.email)
  assert.equal(said(await confirm(third, begun)), '400 TOTP_NOT_ENABLED', 'another session has begun it')
  const { body: confirmed } = await confirm(third, (await enable(third)).body)
  assert.equal(await opens(withToken(confirmed.token)), OPEN)
})

test('a restricted session registers a first passkey with user verification, which then signs in', async () => {
  const ada = await newAdmin()
  const authenticator = createAuthenticator()
  const refused = await passkeys.register(ada, authenticator, { fault: { userVerified: false } })
  assert.equal(said(refused), '400 FAILED_TO_VERIFY_REGISTRATION', 'it could never satisfy the requirement')
  assert.equal((await passkeys.register(ada, authenticator)).status, 200)
  assert.equal(said(await enable(ada)), CLOSED, 'the passkey is a factor now')
  assert.equal(await opens(withToken((await passkeys.signIn(authenticator)).body.token)), OPEN)
})

test('a session from before the factor was kept shows it, or a new sign-in does', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  await makeAdmin(ada)
  assert.equal(await opens(ada), OPEN)
  const old = { shown: [], authTime: null, factorShownAt: null, userHad: [] }
  await kernel.db.updateTable('session').set(old).where('userId', '=', ada.id).execute()
  await kernel.coherence.settle()
  assert.equal(await opens(ada), CLOSED)
  const verified = await ada.post(`${AUTH}/two-factor/verify-totp`, { code: codeOf(t, ada.secret) })
  assert.equal(verified.status, 200, verified.text)
  assert.equal(await opens(ada), OPEN)
})

test('a backup code and a trusted device satisfy the requirement', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  await makeAdmin(ada)
  const pending = async () =>
    (await t.anon.post(`${AUTH}/sign-in/email`, { email: ada.email, password: PASSWORD })).body.token
  const byCode = await t.anon.post(`${AUTH}/two-factor/verify-backup-code`, {
    ...{ token: await pending(), code: ada.backupCodes[0], trustDevice: true },
  })
  assert.equal(await opens(withToken(byCode.body.token)), OPEN)
  const [cookie = ''] = byCode.headers.getSetCookie().filter((cookie) => cookie.includes('trusted-device'))
  const headers = { cookie: cookie.split(';')[0] ?? '' }
  const credentials = { email: ada.email, password: PASSWORD }
  const trusted = await t.anon.post(`${AUTH}/sign-in/email`, credentials, { headers })
  assert.equal(await opens(withToken(trusted.body.token)), OPEN)
})

test('a factor that is taken away counts in no session any more', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  await makeAdmin(ada)
  assert.equal((await ada.post(`${AUTH}/two-factor/disable`, { password: PASSWORD })).status, 200)
  assert.equal(await opens(ada), CLOSED)
  assert.equal((await enable(ada)).status, 200, 'and the user adds another one')
})

const insertPasskeyOf = ({ id: userId }: User) =>
  kernel.db
    .insertInto('passkey')
    .values({
      ...{ id: crypto.randomUUID(), userId, name: null, credentialId: userId, publicKey: '', counter: '0' },
      ...{ deviceType: 'singleDevice', backedUp: false, transports: '', aaguid: crypto.randomUUID() },
      createdAt: kernel.now(),
    })
    .execute()
