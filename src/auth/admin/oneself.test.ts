import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, type Answer, actor, PASSWORD, testClock, testService, type User } from '#test/harness.ts'
import { personWith, reset } from '#test/mailbox-doors.ts'
import { createPerson } from '#test/organizations.ts'
import { proveAddress } from '#test/proven-address.ts'
import { codeOf, enrolTotp, signedInAs } from '#test/second-factor.ts'
import { setPasswordByOperator } from '../password/password.ts'
import { setRoleByOperator } from './operator.ts'

const t = await testService({ clock: testClock({ isStopped: true }) })
const { kernel } = t.service
const AUTH = '/api/auth'
const [MINUTE, DAY] = [60_000, 86_400_000]
const NEW_PASSWORD = 'the password of a thief'
const REFUSED = '403 SESSION_NOT_FRESH'

const said = ({ status, body }: Answer) => (body?.code === undefined ? `${status}` : `${status} ${body.code}`)
const withToken = (token: string): Actor => actor(t.url, { authorization: `Bearer ${token}` })
type Known = Pick<User, 'id' | 'email'>

async function newAdmin(): Promise<User> {
  const ada = await proveAddress(t, await t.signUp('Ada'))
  await setRoleByOperator(kernel, ada.id, 'admin')
  return ada
}
const setPassword = (who: Actor, { id: userId }: Known) =>
  who.post(`${AUTH}/admin/set-user-password`, { userId, newPassword: NEW_PASSWORD })
const setEmail = (who: Actor, { id: userId, email }: Known) =>
  who.post(`${AUTH}/admin/update-user`, { userId, data: { email: `new-${email}` } })
const reauthenticate = async (who: Actor, body: object): Promise<Actor> =>
  withToken((await who.post(`${AUTH}/reauthenticate`, body)).body.token)
/** Refused, with these names of what would do; and nothing has happened. */
async function expectRefused(me: Actor, user: Known, verb: typeof setEmail, accepts: readonly string[]) {
  await t.mails()
  const refused = await verb(me, user)
  assert.deepEqual([said(refused), refused.body.details?.accepts], [REFUSED, accepts])
  const { body } = await me.get(`${AUTH}/get-session`)
  assert.equal(body.user.email, user.email)
  assert.deepEqual(await t.mails(), [])
}

test('an admin sets the own password and address shortly after showing the password, not with the session alone', async () => {
  for (const verb of [setPassword, setEmail]) {
    const ada = await newAdmin()
    t.advance(10 * MINUTE + 1)
    await expectRefused(ada, ada, verb, ['password'])
    assert.equal(said(await verb(await reauthenticate(ada, { password: PASSWORD }), ada)), '200')
  }
})

test('of another user the same verbs ask for nothing', async () => {
  const ada = await newAdmin()
  const bob = await t.signUp('Bob')
  t.advance(DAY)
  assert.deepEqual([said(await setEmail(ada, bob)), said(await setPassword(ada, bob))], ['200', '200'])
})

test('name and picture of an admin are changed with the session alone', async () => {
  const ada = await newAdmin()
  t.advance(DAY)
  const data = { name: 'Augusta', email: ada.email }
  assert.equal(said(await ada.post(`${AUTH}/admin/update-user`, { userId: ada.id, data })), '200')
})

test('where a factor is in force the own address needs it as well, and the own password a session that has passed it', async () => {
  const ada = await enrolTotp(t, await newAdmin())
  t.advance(10 * MINUTE + 1)
  const byPassword = await reauthenticate(ada, { password: PASSWORD })
  await expectRefused(byPassword, ada, setEmail, ['totp', 'backup_code'])
  const byBoth = await reauthenticate(byPassword, { code: codeOf(t, ada.secret) })
  assert.equal(said(await setEmail(byBoth, ada)), '200')
  assert.equal(said(await setPassword(byBoth, ada)), '200')
})

test('a young password stands for no address, and without one the address changes by change-email', async () => {
  const ada = await newAdmin()
  await setPasswordByOperator(kernel, ada.id, NEW_PASSWORD)
  await expectRefused(await signedInAs(t, ada.email, NEW_PASSWORD), ada, setEmail, [])
  t.advance(7 * DAY + 1)
  assert.equal(said(await setEmail(await signedInAs(t, ada.email, NEW_PASSWORD), ada)), '200')
  const bea = await createPerson(t, { role: 'admin' })
  await expectRefused(bea, bea, setEmail, [])
})

test('an unproven address of an admin changes as change-email would begin it: after a proof', async () => {
  const ada = await t.signUp('Ada')
  await setRoleByOperator(kernel, ada.id, 'admin')
  t.advance(10 * MINUTE + 1)
  await expectRefused(ada, ada, setEmail, ['password'])
  assert.equal(said(await setEmail(await reauthenticate(ada, { password: PASSWORD }), ada)), '200')
})

test('the own password that replaces one from a mailed link comes from the mailbox too', async () => {
  const ada = await personWith(t, ['passkey'])
  await setRoleByOperator(kernel, ada.id, 'admin')
  await reset(t, ada)
  const me = await signedInAs(t, ada.email, ada.password)
  assert.equal(said(await setPassword(me, ada)), '200')
  const again = await signedInAs(t, ada.email, NEW_PASSWORD)
  const enrolling = { method: 'otp', password: NEW_PASSWORD }
  const refused = await again.post(`${AUTH}/two-factor/enable`, enrolling)
  assert.equal(said(refused), '400 OTP_NOT_ENABLED')
})
