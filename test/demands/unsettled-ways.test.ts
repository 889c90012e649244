import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enter } from '#auth/social/enter.ts'
import { linkIdentity } from '#auth/social/link.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { type Actor, type Answer, actor, PASSWORD, testClock, testService, type User } from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { codeOf, enrolTotp } from '#test/second-factor.ts'
import { SIGN_IN } from './thief.ts'

const t = await testService({
  clock: testClock({ isStopped: true }),
  config: { auth: { social: { providers: { github: { client_id: 'id', client_secret: 'secret' } } } } },
})
const { kernel } = t.service
const passkeys = ceremoniesOf(t)
const AUTH = '/api/auth'
const [MINUTE, DAY] = [60_000, 86_400_000]
const THEIRS = 'thief@example.com'

const said = ({ status, body }: Answer) => (body?.code === undefined ? `${status}` : `${status} ${body.code}`)
const accepted = ({ body }: Answer): unknown => body?.details?.accepts
const withToken = (token: string): Actor => actor(t.url, { authorization: `Bearer ${token}` })
const NOT_FRESH = '403 SESSION_NOT_FRESH'

/** Adds a way in with the session of a user; the result signs in by it. */
const WAYS = {
  async passkey(user: User) {
    const authenticator = createAuthenticator()
    assert.equal((await passkeys.register(user, authenticator)).status, 200)
    return async () => withToken((await passkeys.signIn(authenticator)).body.token)
  },
  async 'linked account'(user: User) {
    const { id } = (await user.get(`${AUTH}/get-session`)).body.session
    const account = { accountId: `of ${user.id}`, email: user.email, emailVerified: true, name: 'Ada' }
    const proven = { provider: 'github', identity: { ...account, image: null, tokens: {} } }
    const proof = { userId: user.id, session: { id } }
    await linkIdentity(kernel, { ...proven, proof, refuse: () => new Error('the session is gone') })
    return async () => {
      const { admission } = await enter(kernel, { ...proven, requestSignUp: false }, SIGN_IN)
      return 'token' in admission ? withToken(admission.token) : assert.fail('a factor is asked for')
    }
  },
} as const

const dropPassword = ({ id }: User) =>
  kernel.db.deleteFrom('account').where('userId', '=', id).where('providerId', '=', 'credential').execute()
const isThere = async ({ id, email }: User) =>
  (await kernel.db.selectFrom('user').select('email').where('id', '=', id).executeTakeFirst())?.email ===
  email
const changeEmail = (who: Actor) => who.post(`${AUTH}/change-email`, { newEmail: THEIRS })
const enable = (who: Actor) => who.post(`${AUTH}/two-factor/enable`, {})
const deleteUser = async (who: Actor) => (await who.post(`${AUTH}/delete-user`, {})).body.message
const mailsToThief = async () => (await t.mails()).filter((mail) => mail.includes(`To: ${THEIRS}`))

for (const [name, add] of Object.entries(WAYS)) {
  test(`a ${name} that a stolen session has added proves nothing in the session that it begins, for seven days`, async () => {
    const ada = await t.signUp('Ada')
    t.advance(11 * MINUTE)
    const signIn = await add(ada)
    for (const age of [0, 7 * DAY - 1]) {
      t.advance(age)
      const thief = await signIn()
      const refused = await changeEmail(thief)
      assert.deepEqual([said(refused), accepted(refused)], [NOT_FRESH, ['password']])
      assert.equal(await deleteUser(thief), 'Verification email sent')
      assert.deepEqual(await mailsToThief(), [])
      assert.ok(await isThere(ada))
    }
    t.advance(2)
    assert.equal(said(await changeEmail(await signIn())), '200')
    assert.equal((await mailsToThief()).length, 1)
  })

  test(`a ${name} that is added within ten minutes of a proof is one at once`, async () => {
    const ada = await t.signUp('Ada')
    t.advance(10 * MINUTE)
    const signIn = await add(ada)
    t.advance(60 * MINUTE)
    assert.equal(await deleteUser(await signIn()), 'User deleted')
  })

  test(`a user without a password is not locked out by the factor of who has added a ${name}`, async () => {
    const ada = await t.signUp('Ada')
    await WAYS.passkey(ada)
    await dropPassword(ada)
    t.advance(11 * MINUTE)
    const refused = await enable(await (await add(ada))())
    assert.deepEqual([said(refused), accepted(refused)], [NOT_FRESH, []])
  })

  test(`with a ${name} that is not settled the password, or a code, proves the user as ever`, async () => {
    const ada = await t.signUp('Ada')
    t.advance(11 * MINUTE)
    const own = await (await add(ada))()
    const { body } = await own.post(`${AUTH}/reauthenticate`, { password: PASSWORD })
    assert.equal(said(await changeEmail(withToken(body.token))), '200')
    await t.mails()
    assert.equal(await deleteUser(withToken(body.token)), 'User deleted')
  })

  test(`what who has added a ${name} adds with it is settled no sooner`, async () => {
    const ada = await t.signUp('Ada')
    t.advance(11 * MINUTE)
    const thief = await (await add(ada))()
    const second = await WAYS.passkey({ ...ada, ...thief })
    assert.equal(said(await changeEmail(await second())), NOT_FRESH)
  })
}

test('a passkey that is not settled signs in past the second factor, and does not take it away', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  await WAYS.passkey(ada)
  await dropPassword(ada)
  t.advance(11 * MINUTE)
  const own = await (await WAYS.passkey(ada))()
  const disable = (who: Actor) => who.post(`${AUTH}/two-factor/disable`, {})
  const refused = await disable(own)
  assert.deepEqual([said(refused), accepted(refused)], [NOT_FRESH, ['totp', 'backup_code']])
  const shown = await own.post(`${AUTH}/reauthenticate`, { code: codeOf(t, ada.secret) })
  assert.equal(said(await disable(withToken(shown.body.token))), '200')
})

test('a session that has shown a proof is not less after a passkey that it has added itself', async () => {
  const ada = await t.signUp('Ada')
  t.advance(11 * MINUTE)
  const authenticator = createAuthenticator()
  await passkeys.register(ada, authenticator)
  const { body } = await ada.post(`${AUTH}/reauthenticate`, { password: PASSWORD })
  const own = withToken(body.token)
  const { body: options } = await passkeys.requestOptions(own)
  const response = authenticator.get(options, kernel.publicUrl())
  const again = await own.post(`${AUTH}/reauthenticate`, { response, challengeId: options.challengeId })
  assert.equal(await deleteUser(withToken(again.body.token)), 'User deleted')
})
