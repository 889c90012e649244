import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import {
  type Actor,
  type Answer,
  actor,
  confirm,
  linkIn,
  PASSWORD,
  testClock,
  testService,
  type User,
} from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import {
  codeOf,
  cookiesOf,
  type Enrolled,
  enrolTotp,
  pendingSignIn,
  secretIn,
  TRUSTED_COOKIE,
} from '#test/second-factor.ts'

const t = await testService({ clock: testClock({ isStopped: true }) })
const { db, now } = t.service.kernel
const passkeys = ceremoniesOf(t)
const AUTH = '/api/auth'
const MINUTE = 60_000
const DAY = 1_440 * MINUTE
const THEIRS = 'the password of a thief'

const said = ({ status, body }: Answer) => (body?.code === undefined ? `${status}` : `${status} ${body.code}`)
const accepted = ({ body }: Answer): unknown => body?.details?.accepts
const NOT_FRESH = '403 SESSION_NOT_FRESH'
const addressOf = async (id: string) =>
  (await db.selectFrom('user').select('email').where('id', '=', id).executeTakeFirstOrThrow()).email
const prove = ({ id }: User) =>
  db.updateTable('user').set({ emailVerified: true, emailProvenAt: now() }).where('id', '=', id).execute()
const dropPassword = ({ id }: User) =>
  db.deleteFrom('account').where('userId', '=', id).where('providerId', '=', 'credential').execute()
const withPasskey = async <U extends User>(user: U): Promise<U> => {
  assert.equal((await passkeys.register(user, createAuthenticator())).status, 200)
  return user
}
const mailsTo = (address: string, mails: readonly string[]) =>
  mails.filter((mail) => mail.includes(`To: ${address}`))

/** The session of a user with password and authenticator app, eleven minutes after the sign-in. */
async function stolen(): Promise<Enrolled> {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  await prove(ada)
  t.advance(11 * MINUTE)
  await t.mails()
  return ada
}

test('a stolen fresh session cannot take the account: every step but the passkey is refused', async () => {
  const ada = await stolen()
  const authenticator = createAuthenticator()
  assert.equal((await passkeys.register(ada, authenticator)).status, 200, 'a fresh session adds a passkey')
  assert.match((await t.mails()).join(), /A passkey was added/)

  const { body: options } = await passkeys.requestOptions(ada)
  const response = authenticator.get(options, t.service.kernel.publicUrl())
  const shown = await ada.post(`${AUTH}/reauthenticate`, { response, challengeId: options.challengeId })
  assert.equal(shown.status, 200, shown.text)
  const thief = {
    post: (path: string, body: object) => t.anon.post(`${AUTH}${path}`, body, as(shown.body.token)),
  }
  const steps: readonly [string, object, readonly string[]][] = [
    ['/unlink-account', { providerId: 'credential' }, ['password']],
    ['/two-factor/get-totp-uri', {}, ['totp', 'backup_code']],
    ['/two-factor/generate-backup-codes', {}, ['totp', 'backup_code']],
    ['/two-factor/disable', {}, ['totp', 'backup_code']],
    ['/two-factor/enable', {}, ['totp', 'backup_code']],
    ['/two-factor/enable', { method: 'otp' }, ['totp', 'backup_code']],
  ]
  for (const [path, body, accepts] of steps) {
    const refused = await thief.post(path, body)
    assert.deepEqual([said(refused), accepted(refused)], [NOT_FRESH, accepts], path)
  }
  assert.equal(said(await thief.post('/set-password', { newPassword: THEIRS })), '400 PASSWORD_ALREADY_SET')
  assert.equal(said(await thief.post('/delete-user', {})), '200', 'a mail, which the owner gets')
  await thief.post('/change-email', { newEmail: 'thief@example.com' })
  assert.equal(mailsTo('thief@example.com', await t.mails()).length, 0)
  assert.equal(await addressOf(ada.id), ada.email)
  assert.equal(
    (await pendingSignIn(t.anon, ada.email)).body.twoFactorRedirect,
    true,
    'password and factor are there',
  )
})

test('a sign-in with a passkey that a stolen session has added shows neither password nor factor: what asks for one is refused', async () => {
  const ada = await stolen()
  await setRoleByOperator(t.service.kernel, ada.id, 'admin')
  const authenticator = createAuthenticator()
  assert.equal((await passkeys.register(ada, authenticator)).status, 200)
  const { body } = await passkeys.signIn(authenticator)
  const post = (path: string, sent: object) => t.anon.post(`${AUTH}${path}`, sent, as(body.token))
  const userId = ada.id
  const [password, factor] = [['password'], ['totp', 'backup_code']]
  const steps: readonly (readonly [string, object, readonly string[]])[] = [
    ['/unlink-account', { providerId: 'credential' }, password],
    ['/two-factor/get-totp-uri', {}, factor],
    ['/two-factor/generate-backup-codes', {}, factor],
    ['/two-factor/disable', {}, factor],
    ['/two-factor/enable', {}, factor],
    ['/admin/set-user-password', { userId, newPassword: THEIRS }, password],
    ['/admin/update-user', { userId, data: { email: 'thief@example.com' } }, password],
  ]
  for (const [path, sent, accepts] of steps) {
    const refused = await post(path, sent)
    assert.deepEqual([said(refused), accepted(refused)], [NOT_FRESH, accepts], path)
  }
  assert.equal(said(await post('/set-password', { newPassword: THEIRS })), '400 PASSWORD_ALREADY_SET')
  await post('/change-email', { newEmail: 'thief@example.com' })
  assert.equal(mailsTo('thief@example.com', await t.mails()).length, 0)
  assert.equal(await addressOf(ada.id), ada.email)
  assert.equal((await pendingSignIn(t.anon, ada.email)).body.twoFactorRedirect, true)
})

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

test('the password alone neither reads the secret of a factor in force nor replaces codes, and disables nothing', async () => {
  const ada = await stolen()
  for (const path of ['get-totp-uri', 'generate-backup-codes', 'disable', 'enable']) {
    const refused = await ada.post(`${AUTH}/two-factor/${path}`, { password: PASSWORD })
    assert.deepEqual([said(refused), accepted(refused)], [NOT_FRESH, ['totp', 'backup_code']], path)
  }
  const verified = await ada.post(`${AUTH}/two-factor/verify-totp`, { code: codeOf(t, ada.secret) })
  assert.equal(verified.status, 200)
  const shown = await ada.post(`${AUTH}/two-factor/get-totp-uri`, { password: PASSWORD })
  assert.equal(secretIn(shown.body.totpURI), ada.secret)
})

test('a password that a session of a user without one has set does not change the address', async () => {
  for (const isProven of [true, false]) {
    const ada = await withPasskey(await t.signUp('Ada'))
    if (isProven) await prove(ada)
    await dropPassword(ada)
    const thief = await signInByPasskey(ada)
    t.advance(11 * MINUTE)
    assert.equal(said(await thief.post(`${AUTH}/set-password`, { newPassword: THEIRS })), '200')
    await t.mails()
    const change = () =>
      thief.post(`${AUTH}/change-email`, { newEmail: 'thief@example.com', password: THEIRS })
    assert.equal(said(await change()), isProven ? '200' : NOT_FRESH)
    assert.equal(mailsTo('thief@example.com', await t.mails()).length, 0, 'the old address is asked, or none')

    t.advance(7 * DAY + 1)
    const later = await t.anon.post(`${AUTH}/sign-in/email`, { email: ada.email, password: THEIRS })
    await t.anon.post(
      `${AUTH}/change-email`,
      { newEmail: 'later@example.com', password: THEIRS },
      as(later.body.token),
    )
    assert.equal(mailsTo('later@example.com', await t.mails()).length, 1, 'it is settled after seven days')
  }
})

/** A session of a user whose password is gone. */
async function signInByPasskey(user: User): Promise<Actor> {
  const authenticator = createAuthenticator()
  await passkeys.register(user, authenticator)
  const { body } = await passkeys.signIn(authenticator)
  return {
    ...user,
    get: (path) => t.anon.get(path, as(body.token)),
    post: (path, sent) => t.anon.post(path, sent, as(body.token)),
  }
}

test('the age of a password starts at a reset, and a change inherits it', async () => {
  const ada = await t.signUp('Ada')
  await prove(ada)
  await t.anon.post(`${AUTH}/forget-password`, { email: ada.email })
  const link = linkIn((await t.mails()).at(-1) ?? '')
  const token = link.split('/').at(-1)
  assert.equal(said(await t.anon.post(`${AUTH}/reset-password`, { token, newPassword: THEIRS })), '200')
  const { body } = await t.anon.post(`${AUTH}/sign-in/email`, { email: ada.email, password: THEIRS })
  const asked = async (password: string) => {
    await t.mails()
    const newEmail = `new-${ada.email}`
    const answer = await t.anon.post(`${AUTH}/change-email`, { newEmail, password }, as(body.token))
    assert.equal(answer.status, 200, answer.text)
    return mailsTo(newEmail, await t.mails()).length === 1 ? 'new address' : 'old address'
  }
  assert.equal(await asked(THEIRS), 'old address')
  const changed = { currentPassword: THEIRS, newPassword: PASSWORD }
  assert.equal(said(await t.anon.post(`${AUTH}/change-password`, changed, as(body.token))), '200')
  assert.equal(await asked(PASSWORD), 'old address')
  t.advance(6 * DAY)
  assert.equal(await asked(PASSWORD), 'old address')
})

test('the password stands for the old address together with a code where a factor is in force', async () => {
  const ada = await stolen()
  const ask = async (more: object) => {
    const newEmail = 'new-of-ada@example.com'
    const answer = await ada.post(`${AUTH}/change-email`, { newEmail, password: PASSWORD, ...more })
    const mails = await t.mails()
    return [said(answer), mailsTo(newEmail, mails).length]
  }
  assert.deepEqual(await ask({}), ['200', 0])
  assert.deepEqual(await ask({ code: '000000' }), ['401 INVALID_CODE', 0])
  assert.deepEqual(await ask({ code: codeOf(t, ada.secret) }), ['200', 1])
})

test('an unproven account does not change its address without a proof, and not without its factor', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  t.advance(11 * MINUTE)
  await t.mails()
  const change = (body: object = {}) =>
    ada.post(`${AUTH}/change-email`, { newEmail: 'thief@example.com', ...body })
  const first = await change()
  assert.deepEqual([said(first), accepted(first)], [NOT_FRESH, ['password', 'totp', 'backup_code']])
  const second = await change({ password: PASSWORD })
  assert.deepEqual([said(second), accepted(second)], [NOT_FRESH, ['totp', 'backup_code']])
  assert.deepEqual(await t.mails(), [])
  assert.equal(said(await change({ password: PASSWORD, code: codeOf(t, ada.secret) })), '200')
  const [mail = ''] = mailsTo('thief@example.com', await t.mails())
  assert.equal((await confirm(ada, linkIn(mail))).status, 200)
})

test('a factor that was begun before set-password is not confirmed after it, and trusted devices end', async () => {
  const ada = await withPasskey(await t.signUp('Ada'))
  const begun = await ada.post(`${AUTH}/two-factor/enable`, { password: PASSWORD })
  await dropPassword(ada)
  assert.equal(said(await ada.post(`${AUTH}/set-password`, { newPassword: THEIRS })), '200')
  const code = codeOf(t, secretIn(begun.body.totpURI))
  assert.equal(said(await ada.post(`${AUTH}/two-factor/verify-totp`, { code })), '400 TOTP_NOT_ENABLED')
})

test('unlinking the password and setting one ends the trust in every browser', async () => {
  const ada = await withPasskey(await enrolTotp(t, await t.signUp('Ada')))
  const { token } = (await pendingSignIn(t.anon, ada.email)).body
  const trusted = await t.anon.post(`${AUTH}/two-factor/verify-totp`, {
    ...{ token, code: codeOf(t, ada.secret), trustDevice: true },
  })
  const cookie = `${TRUSTED_COOKIE}=${cookiesOf(trusted)[TRUSTED_COOKIE]}`
  assert.equal(said(await ada.post(`${AUTH}/unlink-account`, { providerId: 'credential' })), '200')
  assert.equal(said(await ada.post(`${AUTH}/set-password`, { newPassword: PASSWORD })), '200')
  assert.equal((await pendingSignIn(t.anon, ada.email, { cookie })).body.twoFactorRedirect, true)
})

test('beside a factor, a session that has not shown it adds no way in', async () => {
  const ada = await withPasskey(await t.signUp('Ada'))
  const old = await t.anon.post(`${AUTH}/sign-in/email`, { email: ada.email, password: PASSWORD })
  const enrolled = await enrolTotp(t, ada)
  assert.equal(
    said(await t.anon.get(`${AUTH}/get-session`, as(old.body.token))),
    '401 UNAUTHORIZED',
    'it ended',
  )
  await db
    .updateTable('session')
    .set({ shown: ['password'] })
    .where('userId', '=', ada.id)
    .execute()
  const refused = await passkeys.creationOptions(enrolled)
  assert.deepEqual([said(refused), accepted(refused)], [NOT_FRESH, ['totp', 'backup_code']])
})

test('deleting the account without a password needs a proof within ten minutes, else mails', async () => {
  const ada = await t.signUp('Ada')
  await prove(ada)
  t.advance(10 * MINUTE + 1_000)
  await t.mails()
  const late = await ada.post(`${AUTH}/delete-user`, {})
  assert.deepEqual([late.status, late.body.message], [200, 'Verification email sent'])
  assert.equal((await t.mails()).length, 1)
  const { body } = await ada.post(`${AUTH}/reauthenticate`, { password: PASSWORD })
  const deleted = await t.anon.post(`${AUTH}/delete-user`, {}, as(body.token))
  assert.equal(deleted.body.message, 'User deleted')
})

test('a password that a stolen session has set deletes no account', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  await prove(ada)
  const key = createAuthenticator()
  assert.equal((await passkeys.register(ada, key)).status, 200)
  await dropPassword(ada)
  const { token } = (await passkeys.signIn(key)).body
  t.advance(60 * MINUTE)
  const thief = actor(t.url, { authorization: `Bearer ${token}` })
  assert.equal((await thief.post(`${AUTH}/set-password`, { newPassword: THEIRS })).status, 200)
  await t.mails()
  const { body } = await thief.post(`${AUTH}/delete-user`, { password: THEIRS })
  assert.match(body.message, /[Mm]ail/)
  assert.equal(mailsTo(ada.email, await t.mails()).length, 1, 'the owner is asked')
  assert.ok(await addressOf(ada.id))
})
