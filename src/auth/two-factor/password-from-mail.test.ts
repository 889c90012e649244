import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, type Answer, actor, PASSWORD, testService } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import {
  addFactor,
  BACKUP_CODE,
  byPassword,
  doorsOf,
  firstLink,
  MAILED_CODE,
  NEW_PASSWORD,
  type Person,
  personWith,
  plantCode,
  reset,
} from '#test/mailbox-doors.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { codeOf, cookiesOf, TRUSTED_COOKIE } from '#test/second-factor.ts'
import { setRoleByOperator } from '../admin/operator.ts'
import { setPasswordByOperator } from '../password/password.ts'

const { t, clock, kernel, db, idToken } = await startSocialService({
  two_factor: { required_for: ['admin'] },
})
/** Another process on the same database. */
const elsewhere = await testService({ clock, controlUrl: t.controlUrl })
const passkeys = ceremoniesOf(t)
const DOORS = doorsOf({ t, idToken })
const AUTH = '/api/auth'
const DAY = 86_400_000

const said = ({ status, body }: Answer) => (body?.code === undefined ? `${status}` : `${status} ${body.code}`)
const withToken = (token = ''): Actor => actor(t.url, { authorization: `Bearer ${token}` })
/** The methods of the second step after the password. */
const offered = async (person: Person, service = t) => (await byPassword(service, person)).methods
const verify = (by: 'totp' | 'otp' | 'backup-code', token: string | undefined, code: string, more = {}) =>
  t.anon.post(`${AUTH}/two-factor/verify-${by}`, { token, code, ...more })
const enrolOtp = (who: Actor, { password }: Person) =>
  who.post(`${AUTH}/two-factor/enable`, { method: 'otp', password })
const changePassword = async (who: Actor, person: Person, newPassword: string) => {
  const asked = { currentPassword: person.password, newPassword }
  assert.equal(said(await who.post(`${AUTH}/change-password`, asked)), '200')
  person.password = newPassword
}
const REFUSED = '400 OTP_NOT_ENABLED'

test('days after a reset by mail, codes by mail stand for no app, in no process, until the password was used with the app', async () => {
  const ada = await personWith(t, ['totp'])
  assert.equal(await offered(ada), 'totp otp')
  await reset(t, ada)
  for (const later of [0, DAY + 1, 30 * DAY]) {
    t.advance(later)
    assert.deepEqual([await offered(ada), await offered(ada, elsewhere)], ['totp', 'totp'])
  }
  const { pending } = await byPassword(elsewhere, ada)
  assert.equal(said(await verify('totp', pending, codeOf(t, ada.secret))), '200')
  assert.deepEqual([await offered(ada), await offered(ada, elsewhere)], ['totp otp', 'totp otp'])
})

test('a backup code is another factor than the mailbox', async () => {
  const ada = await personWith(t, ['totp'])
  await reset(t, ada)
  const { pending } = await byPassword(t, ada)
  assert.equal(said(await verify('backup-code', pending, BACKUP_CODE)), '200')
  assert.equal(await offered(ada), 'totp otp')
})

test('an app beside a provider of the same mailbox says nothing for the password', async () => {
  const ada = await personWith(t, ['totp'])
  await reset(t, ada)
  const { pending } = await DOORS['a provider of the same mailbox'](ada)
  assert.equal(said(await verify('totp', pending, codeOf(t, ada.secret))), '200')
  assert.equal(await offered(ada), 'totp')
})

test('a changed password comes from where the one before it came; a passkey beside it ends that', async () => {
  const ada = await personWith(t, ['passkey'])
  await reset(t, ada)
  const { session } = await byPassword(t, ada)
  await changePassword(withToken(session), ada, 'chosen in a session')
  const again = withToken((await byPassword(t, ada)).session)
  assert.equal(said(await enrolOtp(again, ada)), REFUSED)
  const { body: options } = await passkeys.requestOptions(t.anon)
  const response = ada.authenticator.get(options, kernel.publicUrl())
  const shown = await again.post(`${AUTH}/reauthenticate`, { response, challengeId: options.challengeId })
  assert.equal(said(await enrolOtp(withToken(shown.body.token), ada)), '200')
})

test('a passkey that was added in the session is not another factor', async () => {
  const ada = await personWith(t, [])
  await reset(t, ada)
  const me = withToken((await byPassword(t, ada)).session)
  await passkeys.register(me, ada.authenticator)
  const { body: options } = await passkeys.requestOptions(t.anon)
  const response = ada.authenticator.get(options, kernel.publicUrl())
  const shown = await me.post(`${AUTH}/reauthenticate`, { response, challengeId: options.challengeId })
  assert.equal(shown.status, 200, shown.text)
  assert.equal(said(await enrolOtp(withToken(shown.body.token), ada)), REFUSED)
})

test('a password that an operator assigns does not come from the mailbox', async () => {
  const ada = await personWith(t, ['totp'])
  await reset(t, ada)
  await setPasswordByOperator(kernel, ada.id, PASSWORD)
  assert.equal(await offered({ ...ada, password: PASSWORD }), 'totp otp')
})

test('a password that is chosen by the link of a first proof comes from the mailbox', async () => {
  const ada = await personWith(t, [])
  const asked = { token: await firstLink(t, ada), newPassword: NEW_PASSWORD }
  assert.equal(said(await t.anon.post(`${AUTH}/verify-email`, asked)), '200')
  await addFactor(t, ada, ['totp'])
  assert.equal(await offered({ ...ada, password: NEW_PASSWORD }), 'totp')
})

test('a password that is set in a session by the mailbox alone comes from the mailbox', async () => {
  for (const [door, expected] of [
    ['a provider of the same mailbox', 'totp'],
    ['a provider of another mailbox', 'totp otp'],
  ] as const) {
    const ada = await personWith(t, [])
    await db.deleteFrom('account').where('userId', '=', ada.id).execute()
    const { session } = await DOORS[door](ada)
    const set = await withToken(session).post(`${AUTH}/set-password`, { newPassword: NEW_PASSWORD })
    assert.equal(set.status, 200, set.text)
    await addFactor(t, ada, ['totp'])
    assert.equal(await offered({ ...ada, password: NEW_PASSWORD }), expected, door)
  }
})

test('a trusted browser is no required factor where the mailbox alone can have made it trusted', async () => {
  const ada = await personWith(t, ['otp'])
  await setRoleByOperator(kernel, ada.id, 'admin')
  await reset(t, ada)
  const entered = await byPassword(t, ada)
  await plantCode(t, ada, entered)
  const verified = await verify('otp', entered.pending, MAILED_CODE, { trustDevice: true })
  let trusted = cookiesOf(verified)[TRUSTED_COOKIE] ?? ''
  const opens = async (token: string | undefined) => said(await withToken(token).get(`${AUTH}/list-sessions`))
  const enter = async () => {
    const headers = { cookie: `${TRUSTED_COOKIE}=${trusted}` }
    const answer = await t.anon.post(
      `${AUTH}/sign-in/email`,
      { email: ada.email, password: ada.password },
      { headers },
    )
    trusted = cookiesOf(answer)[TRUSTED_COOKIE] ?? ''
    return answer.body.token
  }
  const byDevice = await enter()
  assert.equal(await opens(byDevice), '403 TWO_FACTOR_REQUIRED')
  const backup = { code: BACKUP_CODE }
  const shown = await withToken(byDevice).post(`${AUTH}/two-factor/verify-backup-code`, backup)
  assert.equal(await opens(shown.body.token), '200')
  assert.equal(await opens(await enter()), '200')
})

test('where a factor is required, codes by mail do not become one by the mailbox alone', async () => {
  const ada = await personWith(t, [])
  await setRoleByOperator(kernel, ada.id, 'admin')
  await reset(t, ada)
  const me = withToken((await byPassword(t, ada)).session)
  assert.equal(said(await enrolOtp(me, ada)), REFUSED)
  assert.equal(said(await me.post(`${AUTH}/two-factor/enable`, { password: ada.password })), '200')
})

test('codes by mail are not named among the proofs that would do', async () => {
  for (const [isReset, names] of [
    [false, ['otp', 'backup_code', 'passkey']],
    [true, ['backup_code', 'passkey']],
  ] as const) {
    const ada = await personWith(t, ['otp', 'passkey'])
    if (isReset) await reset(t, ada)
    const { token } = (await passkeys.signIn(ada.authenticator)).body
    t.advance(660_000)
    const refused = await withToken(token).post(`${AUTH}/two-factor/disable`, { password: ada.password })
    assert.deepEqual(
      [said(refused), refused.body.details.accepts],
      ['403 SESSION_NOT_FRESH', names],
      `${isReset}`,
    )
  }
})

test('a code that was mailed before a passkey came is not taken after it, and is not used up', async () => {
  const ada = await personWith(t, ['otp'])
  await reset(t, ada)
  const entered = await byPassword(t, ada)
  await plantCode(t, ada, entered)
  const passkey = {
    ...{ id: ada.id, userId: ada.id, createdAt: kernel.now(), name: 'Key', credentialId: ada.id },
    ...{ publicKey: 'key', counter: '0', deviceType: 'singleDevice', backedUp: false, transports: '' },
  }
  await db
    .insertInto('passkey')
    .values({ ...passkey, aaguid: ada.id })
    .execute()
  const again = () => verify('otp', entered.pending, MAILED_CODE)
  assert.deepEqual([said(await again()), said(await again())], [REFUSED, REFUSED])
  await db.deleteFrom('passkey').where('userId', '=', ada.id).execute()
  assert.equal(said(await again()), '200')
})

test('wrong codes after a reset by mail are counted', async () => {
  const ada = await personWith(t, ['otp'])
  await reset(t, ada)
  const entered = await byPassword(t, ada)
  await plantCode(t, ada, entered)
  for (let tries = 0; tries < 5; tries++)
    assert.equal(said(await verify('otp', entered.pending, '135791')), '401 INVALID_CODE')
  const right = await verify('otp', entered.pending, MAILED_CODE)
  assert.equal(said(right), '400 TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE')
})
