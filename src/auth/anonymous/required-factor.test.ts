import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signInAnonymously } from '#test/anonymous.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { type Answer, actor, confirm, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { codeOf, cookiesOf, SESSION_COOKIE, secretIn } from '#test/second-factor.ts'

const t = await testService({
  config: { auth: { anonymous: { enabled: true }, two_factor: { required_for: ['user'] } } },
})
const AUTH = '/api/auth'
const said = ({ status, body }: Answer) => (body?.code === undefined ? `${status}` : `${status} ${body.code}`)

test('a second factor that every user needs is not asked of an anonymous one, and is from the upgrade on', async () => {
  const who = await signInAnonymously(t)
  assert.equal(said(await who.get(`${AUTH}/list-sessions`)), '200')
  assert.equal(said(await who.post(`${AUTH}/update-user`, { name: 'Ada' })), '200')
  assert.equal(said(await who.post(`${AUTH}/two-factor/enable`)), '403 USER_IS_ANONYMOUS')

  const email = 'ada@example.com'
  const asked = await who.post(`${AUTH}/sign-up/email`, { name: 'Ada', email, password: PASSWORD })
  assert.deepEqual([asked.body.token, asked.body.user.id], [null, who.id])
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}`)) ?? ''
  const mark = `service-auth.sign-up=${encodeURIComponent(cookiesOf(asked)['service-auth.sign-up'] ?? '')}`
  const browser = actor(t.url, { cookie: `${SESSION_COOKIE}=${who.token}; ${mark}` })
  const done = await confirm(browser, linkIn(mail))
  const own = (token: unknown) => actor(t.url, { authorization: `Bearer ${token}` })
  const known = own(done.headers.get('set-auth-token'))
  const { user } = (await known.get(`${AUTH}/get-session`)).body
  assert.partialDeepStrictEqual(user, { id: who.id, isAnonymous: false })
  assert.equal(said(await known.get(`${AUTH}/list-sessions`)), '403 TWO_FACTOR_REQUIRED')

  const { body } = await known.post(`${AUTH}/reauthenticate`, { password: PASSWORD })
  const begun = await own(body.token).post(`${AUTH}/two-factor/enable`, { password: PASSWORD })
  assert.equal(begun.status, 200, begun.text)
  const code = codeOf(t, secretIn(begun.body.totpURI))
  const verified = await own(body.token).post(`${AUTH}/two-factor/verify-totp`, { code })
  assert.equal(said(await own(verified.body.token).get(`${AUTH}/list-sessions`)), '200')
})

test('the first passkey has to count as that factor, so that it does not shut the user out', async () => {
  const passkeys = ceremoniesOf(t)
  const [who, authenticator] = [await signInAnonymously(t), createAuthenticator()]
  const { body: options } = await passkeys.creationOptions(who)
  assert.equal(options.authenticatorSelection.userVerification, 'required')
  const refused = await passkeys.register(who, authenticator, { fault: { userVerified: false } })
  assert.equal(said(refused), '400 FAILED_TO_VERIFY_REGISTRATION')
  assert.equal((await who.get(`${AUTH}/get-session`)).body.user.isAnonymous, true)

  assert.equal((await passkeys.register(who, authenticator)).status, 200)
  const { body } = await passkeys.signIn(authenticator)
  assert.equal(
    said(await actor(t.url, { authorization: `Bearer ${body.token}` }).get(`${AUTH}/list-sessions`)),
    '200',
  )
})
