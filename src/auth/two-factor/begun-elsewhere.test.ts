import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testClock, testService } from '#test/harness.ts'
import { codeOf, mailedCode, secretIn, signedInAs } from '#test/second-factor.ts'

const t = await testService({ clock: testClock({ isStopped: true }) })
const TWO_FACTOR = '/api/auth/two-factor'

test('the secret of a factor that was begun is read by the session that has begun it, and by no other', async () => {
  const ada = await t.signUp('Ada')
  const thief = await signedInAs(t, ada.email)
  const begun = await ada.post(`${TWO_FACTOR}/enable`, { password: PASSWORD })
  const read = await thief.post(`${TWO_FACTOR}/get-totp-uri`, { password: PASSWORD })
  assert.deepEqual([read.status, read.body.code], [400, 'TOTP_NOT_ENABLED'])
  const own = await ada.post(`${TWO_FACTOR}/get-totp-uri`, { password: PASSWORD })
  assert.equal(secretIn(own.body.totpURI), secretIn(begun.body.totpURI))
})

test('no session puts in force what another has begun, since a stranger would have the backup codes', async () => {
  const ada = await t.signUp('Ada')
  const thief = await signedInAs(t, ada.email)
  const otp = { password: PASSWORD, method: 'otp' }
  const begin = () => ada.post(`${TWO_FACTOR}/enable`, otp)
  assert.equal((await begin()).status, 200)
  await ada.post(`${TWO_FACTOR}/send-otp`)
  const code = mailedCode(await t.mails())
  const trap = await thief.post(`${TWO_FACTOR}/enable`, otp)
  assert.equal(trap.status, 200, trap.text)
  for (const [path, sent] of [
    ['send-otp', {}],
    ['verify-otp', { code }],
  ] as const) {
    const refused = await ada.post(`${TWO_FACTOR}/${path}`, sent)
    assert.deepEqual([refused.status, refused.body.code], [400, 'OTP_NOT_ENABLED'], path)
  }
  assert.deepEqual(await t.mails(), [])

  const trapped = await thief.post(`${TWO_FACTOR}/enable`, { password: PASSWORD })
  const app = { code: codeOf(t, secretIn(trapped.body.totpURI)) }
  assert.equal((await ada.post(`${TWO_FACTOR}/verify-totp`, app)).body.code, 'TOTP_NOT_ENABLED')

  const again = await begin()
  await ada.post(`${TWO_FACTOR}/send-otp`)
  const confirmed = await ada.post(`${TWO_FACTOR}/verify-otp`, { code: mailedCode(await t.mails()) })
  assert.equal(confirmed.status, 200, confirmed.text)
  const signIn = async (backupCode: string) => {
    const { body } = await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
    const shown = { token: body.token, code: backupCode }
    return (await t.anon.post(`${TWO_FACTOR}/verify-backup-code`, shown)).status
  }
  assert.equal(await signIn(trap.body.backupCodes[0]), 401)
  assert.equal(await signIn(again.body.backupCodes[0]), 200)
})
