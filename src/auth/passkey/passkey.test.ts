import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthenticator } from '#test/authenticator.ts'
import { actor, testService, type User } from '#test/harness.ts'
import { ceremoniesOf, expectRefused } from '#test/passkeys.ts'
import { proveAddress } from '#test/proven-address.ts'

const AUTH = '/api/auth'
const t = await testService({ config: { auth: { two_factor: { required_for: ['admin'] } } } })
const { creationOptions, register, signIn, newUser, sessionsOf } = ceremoniesOf(t)
const origin = t.service.kernel.publicUrl()
const { db } = t.service.kernel

test('a user registers a passkey, and signs in with nothing else', async () => {
  const user = await proveAddress(t, await t.signUp('Ada'))
  const { body: options } = await creationOptions(user)
  assert.deepEqual(
    [options.rp, options.user.name, options.attestation, options.excludeCredentials, options.timeout],
    [{ id: 'localhost', name: 'localhost' }, user.email, 'none', [], 300_000],
  )
  assert.deepEqual(options.authenticatorSelection, {
    ...{ residentKey: 'required', requireResidentKey: true, userVerification: 'preferred' },
  })
  const authenticator = createAuthenticator()
  const registered = await register(user, authenticator, { name: ' Laptop ' })
  const { id, createdAt, publicKey, ...record } = registered.body
  assert.deepEqual(record, {
    ...{ name: 'Laptop', userId: user.id, credentialID: authenticator.credentials[0]?.id, counter: 0 },
    ...{ deviceType: 'singleDevice', backedUp: false, transports: 'internal,hybrid' },
    aaguid: '00000000-0000-0000-0000-000000000000',
  })
  assert.ok(Buffer.from(publicKey, 'base64').length > 70 && createdAt.endsWith('Z'))
  assert.ok(
    (await t.mails()).some((mail) => mail.includes('A passkey was added') && mail.includes(user.email)),
  )

  const { status, body, headers } = await signIn(authenticator)
  assert.deepEqual([status, body.user.id, body.session.userId], [200, user.id, user.id])
  assert.deepEqual([body.token, body.session.token], [headers.get('set-auth-token'), body.token])
  const session = actor(t.url, { authorization: `Bearer ${body.token}` })
  assert.equal((await session.get(`${AUTH}/get-session`)).body.user.id, user.id)
  const listed = await session.get(`${AUTH}/passkey/list-user-passkeys`)
  assert.deepEqual(listed.body, [{ ...registered.body, counter: 1 }])
  assert.equal((await creationOptions(session)).body.excludeCredentials[0].id, record.credentialID)
})

test('options of a sign-in name passkeys only with a session, and have no null members', async () => {
  const { user, authenticator } = await newUser()
  for (const method of ['GET', 'POST']) {
    const path = `${AUTH}/passkey/generate-authenticate-options`
    const body = method === 'POST' ? { email: user.email } : undefined
    const anonymous = await t.anon.send(method, path, { body })
    assert.deepEqual(Object.keys(anonymous.body).toSorted(), [
      ...['authenticatorSelection', 'challenge', 'challengeId', 'extensions', 'rp', 'rpId', 'timeout'],
      'userVerification',
    ])
    const known = await user.send(method, path, { body })
    assert.deepEqual(known.body.allowCredentials, [
      { id: authenticator.credentials[0]?.id, type: 'public-key', transports: ['internal', 'hybrid'] },
    ])
    assert.equal(known.body.user.name, user.email)
    assert.ok(!/null/.test(anonymous.text + known.text))
    assert.equal(known.headers.get('cache-control'), 'no-store')
  }
})

test('an unknown passkey is refused by a code of its own, so that the browser can forget it', async () => {
  const { user, authenticator, passkey } = await newUser()
  await proveAddress(t, user)
  const deleted = await user.post(`${AUTH}/passkey/delete-passkey`, { id: passkey.id })
  assert.deepEqual(deleted.body, { status: true })
  expectRefused(await signIn(authenticator), [401, 'PASSKEY_NOT_FOUND'])
  assert.ok(
    (await t.mails()).some((mail) => mail.includes('A passkey was removed') && mail.includes(user.email)),
  )
})

test('a user has several passkeys; each is renamed and deleted by its owner only', async () => {
  const { user, passkey } = await newUser()
  const second = createAuthenticator()
  const { body: added } = await register(user, second, { name: 'Phone' })
  const eve = await t.signUp('Eve')
  const missing: readonly [number, string] = [404, 'PASSKEY_NOT_FOUND']
  for (const id of [passkey.id, 'no-uuid', '00000000-0000-7000-8000-000000000000']) {
    expectRefused(await eve.post(`${AUTH}/passkey/update-passkey`, { id, name: 'Mine' }), missing)
    expectRefused(await eve.post(`${AUTH}/passkey/delete-passkey`, { id }), missing)
  }
  const renamed = await user.post(`${AUTH}/passkey/update-passkey`, { id: passkey.id, name: 'Old laptop' })
  assert.deepEqual([renamed.status, renamed.body.passkey.name], [200, 'Old laptop'])
  const bad = await user.post(`${AUTH}/passkey/update-passkey`, { id: passkey.id, name: 'a\u202eb' })
  assert.deepEqual([bad.status, bad.body.code], [400, 'VALIDATION_ERROR'])
  await user.post(`${AUTH}/passkey/delete-passkey`, { id: passkey.id })
  const { body: left } = await user.get(`${AUTH}/passkey/list-user-passkeys`)
  assert.deepEqual(left, [added])
  assert.equal((await signIn(second)).status, 200)
})

test('a credential is registered once, also by another user', async () => {
  const { user, authenticator } = await newUser()
  const [credential = assert.fail()] = authenticator.credentials
  for (const who of [user, await t.signUp('Eve')]) {
    const { body: options } = await creationOptions(who)
    const response = createAuthenticator().create(options, origin, { credential })
    const answer = await who.post(`${AUTH}/passkey/verify-registration`, {
      ...{ response, challengeId: options.challengeId },
    })
    assert.deepEqual([answer.status, answer.body.code], [400, 'FAILED_TO_VERIFY_REGISTRATION'])
  }
  assert.equal((await signIn(authenticator)).body.user.id, user.id)
})

test('the last way in cannot be deleted', async () => {
  const { user, passkey } = await newUser()
  await db.deleteFrom('account').where('userId', '=', user.id).execute()
  const answer = await user.post(`${AUTH}/passkey/delete-passkey`, { id: passkey.id })
  expectRefused(answer, [400, 'FAILED_TO_UNLINK_LAST_ACCOUNT'])
  await register(user, createAuthenticator())
  assert.equal((await user.post(`${AUTH}/passkey/delete-passkey`, { id: passkey.id })).status, 200)
})

test('registration needs a fresh session, and may end the other sessions', async () => {
  const { user, authenticator } = await newUser()
  const { token } = (await signIn(authenticator)).body
  const other = actor(t.url, { authorization: `Bearer ${token}` })
  const answer = await register(other, createAuthenticator(), { revokeOtherSessions: true })
  assert.equal(answer.status, 200)
  assert.equal((await user.get(`${AUTH}/get-session`)).status, 401)
  const options = (await creationOptions(other)).body
  t.advance(86_400_001)
  assert.equal((await creationOptions(other)).body.code, 'SESSION_NOT_FRESH')
  const response = createAuthenticator().create(options, origin)
  const late = await other.post(`${AUTH}/passkey/verify-registration`, {
    ...{ response, challengeId: options.challengeId },
  })
  assert.equal(late.body.code, 'SESSION_NOT_FRESH')
  assert.equal((await creationOptions(t.anon)).status, 401)
})

test('the first proof of an address removes the passkeys that were added before it', async () => {
  for (const prove of [byLink, byReset]) {
    const { user, authenticator } = await newUser()
    await prove(user)
    expectRefused(await signIn(authenticator), [401, 'PASSKEY_NOT_FOUND'])
  }
})

test('a passkey with user verification counts as both factors, and one without as the first', async () => {
  const { user, authenticator } = await newUser()
  const unverified = { userVerified: false }
  assert.equal((await signIn(authenticator, unverified)).body.session.userId, user.id)

  await db.updateTable('user').set({ twoFactorEnabled: true }).where('id', '=', user.id).execute()
  const sessions = await sessionsOf(user)
  const pending = await signIn(authenticator, unverified)
  assert.deepEqual([pending.body.twoFactorRedirect, 'session' in pending.body], [true, false])
  assert.ok(pending.body.token.startsWith('2fa_'))
  assert.equal(pending.headers.get('set-auth-token'), null)
  assert.equal(await sessionsOf(user), sessions)
  assert.equal((await signIn(authenticator)).body.session.userId, user.id)
})

test('a required second factor opens registration, and a passkey with user verification satisfies it', async () => {
  const admin = await t.signUp('Admin')
  await db.updateTable('user').set({ role: 'admin' }).where('id', '=', admin.id).execute()
  assert.equal((await admin.get(`${AUTH}/passkey/list-user-passkeys`)).body.code, 'TWO_FACTOR_REQUIRED')
  const authenticator = createAuthenticator()
  assert.equal((await register(admin, authenticator)).status, 200)
  for (const userVerified of [false, true]) {
    const { body } = await signIn(authenticator, { userVerified })
    const session = actor(t.url, { authorization: `Bearer ${body.token}` })
    const { status } = await session.get(`${AUTH}/passkey/list-user-passkeys`)
    assert.equal(status, userVerified ? 200 : 403)
  }
})

test('a banned user is not signed in, and the audit trail shows the attempt', async () => {
  const { user, authenticator } = await newUser()
  await db.updateTable('user').set({ banned: true }).where('id', '=', user.id).execute()
  expectRefused(await signIn(authenticator), [403, 'BANNED_USER'])
  const failures = db.selectFrom('auditEvent').select('details').where('action', '=', 'sign_in.failed')
  const found = await failures.where('targetId', '=', user.id).execute()
  assert.deepEqual(found, [{ details: { reason: 'BANNED_USER' } }])
})

async function byLink(user: User): Promise<void> {
  await t.anon.post(`${AUTH}/send-verification-email`, { email: user.email })
  const mail = (await t.mails()).findLast((mail) => mail.includes(user.email) && mail.includes('http')) ?? ''
  const token = /token=3D([\w-]+)|token=([\w-]+)/.exec(mail.replace(/=\r?\n/g, ''))
  const answer = await t.anon.get(`${AUTH}/verify-email?token=${token?.[1] ?? token?.[2]}`)
  assert.equal(answer.status, 200, answer.text)
}

async function byReset(user: User): Promise<void> {
  await t.anon.post(`${AUTH}/forget-password`, { email: user.email })
  const mail = (await t.mails()).findLast((mail) => mail.includes(user.email) && mail.includes('http')) ?? ''
  const token = /reset-password\/([\w-]+)/.exec(mail.replace(/=\r?\n/g, ''))?.[1]
  const answer = await t.anon.post(`${AUTH}/reset-password`, { token, newPassword: 'another horse staple' })
  assert.equal(answer.status, 200, answer.text)
}
