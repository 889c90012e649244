import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets, newSecret } from '#kernel/secrets.ts'
import { PASSWORD, TEST_SECRET, testClock, testService } from '#test/harness.ts'
import { proveAddress } from '#test/proven-address.ts'
import {
  codeOf,
  type Enrolled,
  enrolTotp,
  insertFactor,
  pendingSignIn,
  secretIn,
  wrongCode,
} from '#test/second-factor.ts'
import { replaceUnreadableApps, resealTotpSecrets } from './reseal.ts'

// A stopped clock, so that no code expires on a slow machine.
const t = await testService({ clock: testClock({ isStopped: true }) })
const { db } = t.service.kernel
const AUTH = '/api/auth'

const verifyTotp = (token: string, code: string, more = {}) =>
  t.anon.post(`${AUTH}/two-factor/verify-totp`, { code, token, ...more })
const isEnabled = async (ada: Enrolled) => (await ada.get(`${AUTH}/get-session`)).body.user.twoFactorEnabled

test('an authenticator app is in force after its first right code, and the session gets a new token', async () => {
  const ada = await proveAddress(t, await t.signUp('Ada'))
  await t.mails()
  const begun = await ada.post(`${AUTH}/two-factor/enable`, { password: PASSWORD, issuer: 'Library' })
  assert.deepEqual([begun.status, begun.body.method], [200, 'totp'])
  assert.match(begun.body.totpURI, /^otpauth:\/\/totp\/Library:ada/)
  assert.equal(begun.body.backupCodes.length, 10)
  for (const code of begun.body.backupCodes) assert.match(code, /^[a-z2-9]{5}-[a-z2-9]{5}$/)
  const signIn = await t.anon.post(`${AUTH}/sign-in/email`, { email: ada.email, password: PASSWORD })
  assert.equal(signIn.body.user.twoFactorEnabled, false, 'a factor that was only begun asks for nothing')

  const secret = secretIn(begun.body.totpURI)
  const wrong = await ada.post(`${AUTH}/two-factor/verify-totp`, { code: wrongCode(t, secret) })
  assert.deepEqual([wrong.status, wrong.body.code], [401, 'INVALID_CODE'])
  assert.deepEqual(await t.mails(), [], 'no notice yet')
  const right = await ada.post(`${AUTH}/two-factor/verify-totp`, { code: codeOf(t, secret) })
  assert.deepEqual([right.status, right.body.status, right.body.user.twoFactorEnabled], [200, true, true])
  assert.notEqual(right.body.token, ada.token)
  assert.equal(right.headers.get('set-auth-token'), right.body.token)
  assert.equal((await ada.get(`${AUTH}/get-session`)).status, 401, 'the old token is worthless')
  const headers = { authorization: `Bearer ${right.body.token}` }
  assert.equal((await t.anon.get(`${AUTH}/get-session`, { headers })).body.user.twoFactorEnabled, true)
  const [notice, ...more] = await t.mails()
  assert.match(notice ?? '', /two-factor authentication was set up/)
  assert.deepEqual(more, [])
})

test('a factor that was begun can be put in force for an hour, and then hides the one in force no more', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const begun = await ada.post(`${AUTH}/two-factor/enable`, { password: PASSWORD })
  const newSecret = secretIn(begun.body.totpURI)
  const shown = async () =>
    secretIn((await ada.post(`${AUTH}/two-factor/get-totp-uri`, { password: PASSWORD })).body.totpURI)
  const verified = async (secret: string) =>
    (await ada.post(`${AUTH}/two-factor/verify-totp`, { code: codeOf(t, secret) })).status
  t.advance(3_599_000)
  assert.equal(await shown(), newSecret)
  t.advance(1_000)
  assert.deepEqual([await verified(newSecret), await verified(ada.secret)], [401, 200])
  assert.equal(await shown(), ada.secret)
})

test('a factor that was begun ends with a new password, or with all sessions', async () => {
  const newPassword = 'another good password'
  const ENDS: readonly [string, object, string][] = [
    ['change-password', { currentPassword: PASSWORD, newPassword, revokeOtherSessions: true }, newPassword],
    ['revoke-sessions', {}, PASSWORD],
  ]
  for (const [path, body, password] of ENDS) {
    const ada = await t.signUp('Ada')
    assert.equal((await ada.post(`${AUTH}/two-factor/enable`, { password: PASSWORD })).status, 200)
    assert.equal((await ada.post(`${AUTH}/${path}`, body)).status, 200)
    const { token } = (await t.anon.post(`${AUTH}/sign-in/email`, { email: ada.email, password })).body
    const headers = { authorization: `Bearer ${token}` }
    const { body: answer } = await t.anon.post(`${AUTH}/two-factor/get-totp-uri`, { password }, { headers })
    assert.equal(answer.code, 'TOTP_NOT_ENABLED', path)
  }
})

test('the old factor holds until the first right code of the new one', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const begun = await ada.post(`${AUTH}/two-factor/enable`, { password: PASSWORD })
  const newSecret = secretIn(begun.body.totpURI)
  const outcome = async (code: string, path = 'verify-totp') => {
    const { token } = (await pendingSignIn(t.anon, ada.email)).body
    const { status, body } = await t.anon.post(`${AUTH}/two-factor/${path}`, { token, code })
    return body.code ?? status
  }
  assert.equal(await outcome(codeOf(t, ada.secret)), 200)
  assert.equal(await outcome(codeOf(t, newSecret)), 'INVALID_CODE')
  assert.equal(await outcome(begun.body.backupCodes[0], 'verify-backup-code'), 'INVALID_BACKUP_CODE')
  assert.equal(await outcome(ada.backupCodes[0] ?? '', 'verify-backup-code'), 200)
  t.advance(30_000)

  const waiting = (await pendingSignIn(t.anon, ada.email)).body.token
  const other = (
    await t.anon.post(`${AUTH}/two-factor/verify-totp`, {
      ...{ token: (await pendingSignIn(t.anon, ada.email)).body.token, code: codeOf(t, ada.secret) },
    })
  ).body.token
  const confirmed = await ada.post(`${AUTH}/two-factor/verify-totp`, {
    ...{ code: codeOf(t, newSecret), revokeOtherSessions: true },
  })
  assert.equal(confirmed.status, 200, confirmed.text)
  t.advance(30_000)
  assert.equal((await verifyTotp(waiting, codeOf(t, newSecret))).body.code, 'INVALID_TWO_FACTOR_COOKIE')
  const headers = { authorization: `Bearer ${other}` }
  assert.equal((await t.anon.get(`${AUTH}/get-session`, { headers })).status, 401, 'other sessions end')
  assert.equal(await outcome(codeOf(t, ada.secret)), 'INVALID_CODE')
  assert.equal(await outcome(ada.backupCodes[1] ?? '', 'verify-backup-code'), 'INVALID_BACKUP_CODE')
  assert.equal(await outcome(begun.body.backupCodes[0], 'verify-backup-code'), 200)
  assert.equal(await outcome(codeOf(t, newSecret)), 200)
})

test('disabling needs the password, ends the factor and mails a notice', async () => {
  const ada = await enrolTotp(t, await proveAddress(t, await t.signUp('Ada')))
  await t.mails()
  t.advance(10 * 60_000 + 1)
  assert.equal(
    (await ada.post(`${AUTH}/two-factor/verify-totp`, { code: codeOf(t, ada.secret) })).status,
    200,
  )
  for (const [body, status, code] of [
    [{}, 403, 'SESSION_NOT_FRESH'],
    [{ password: 'wrong password' }, 400, 'INVALID_PASSWORD'],
  ] as const)
    for (const path of ['disable', 'enable', 'get-totp-uri', 'generate-backup-codes']) {
      const refused = await ada.post(`${AUTH}/two-factor/${path}`, body)
      assert.deepEqual([refused.status, refused.body.code], [status, code], path)
    }
  const shown = await ada.post(`${AUTH}/two-factor/get-totp-uri`, { password: PASSWORD })
  assert.equal(secretIn(shown.body.totpURI), ada.secret)
  assert.deepEqual(await t.mails(), [])
  const { body } = await ada.post(`${AUTH}/two-factor/disable`, { password: PASSWORD })
  assert.deepEqual(body, { status: true })
  assert.match((await t.mails()).join(), /two-factor authentication was turned off/)
  assert.equal(await isEnabled(ada), false)
  assert.equal((await pendingSignIn(t.anon, ada.email)).body.user.id, ada.id)
  const again = await ada.post(`${AUTH}/two-factor/disable`, { password: PASSWORD })
  assert.deepEqual([again.status, again.body.code], [400, 'TWO_FACTOR_NOT_ENABLED'])
  for (const [path, code] of [
    ['get-totp-uri', 'TOTP_NOT_ENABLED'],
    ['generate-backup-codes', 'TWO_FACTOR_NOT_ENABLED'],
  ] as const)
    assert.equal((await ada.post(`${AUTH}/two-factor/${path}`, { password: PASSWORD })).body.code, code)
})

test('a factor that was turned off is still demanded in sessions that began with it', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const { token } = (await pendingSignIn(t.anon, ada.email)).body
  const elsewhere = (await verifyTotp(token, codeOf(t, ada.secret))).body.token
  assert.equal((await ada.post(`${AUTH}/two-factor/disable`, { password: PASSWORD })).status, 200)
  t.advance(10 * 60_000 + 1)
  const asked = { newEmail: 'thief@example.com', password: PASSWORD }
  const headers = { authorization: `Bearer ${elsewhere}` }
  const refused = await t.anon.post(`${AUTH}/change-email`, asked, { headers })
  assert.deepEqual([refused.status, refused.body.details?.accepts], [403, []])
  assert.deepEqual(await t.mails(), [])
})

test('a user without a password sets up a second factor in a fresh session', async () => {
  const ada = await t.signUp('Ada')
  await db
    .updateTable('account')
    .set({ password: null, providerId: 'github' })
    .where('userId', '=', ada.id)
    .execute()
  const begun = await ada.post(`${AUTH}/two-factor/enable`)
  assert.equal(begun.status, 200, begun.text)
  const code = codeOf(t, secretIn(begun.body.totpURI))
  const { token } = (await ada.post(`${AUTH}/two-factor/verify-totp`, { code })).body
  const headers = { authorization: `Bearer ${token}` }
  t.advance(86_400_001)
  const stale = await t.anon.post(`${AUTH}/two-factor/disable`, {}, { headers })
  assert.deepEqual([stale.status, stale.body.code], [403, 'SESSION_NOT_FRESH'])
})

test("the secret of an app follows a rotation of the service's secret, and becomes codes by mail when that is lost", async () => {
  const ada = await t.signUp('Ada')
  const secret = await insertFactor(t, ada)
  const stored = async () => {
    const found = await db.selectFrom('twoFactor').selectAll().where('userId', '=', ada.id).executeTakeFirst()
    return { method: found?.method, secret: found?.secret ?? '' }
  }
  const [next, lost] = [newSecret(secureRandom), newSecret(secureRandom)]
  const rotated = createSecrets(next, secureRandom)
  await resealTotpSecrets({ ...t.service.kernel, secrets: createSecrets(next, secureRandom, TEST_SECRET) })
  assert.equal(rotated.open('two-factor-secret', (await stored()).secret, ada.id), secret)
  const lostSecrets = createSecrets(lost, secureRandom)
  assert.ok((await replaceUnreadableApps(db, lostSecrets)) > 0)
  assert.deepEqual(await stored(), { method: 'otp', secret: '' })
  const pending = await pendingSignIn(t.anon, ada.email)
  assert.deepEqual(pending.body.twoFactorMethods, ['otp'])
})
