import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, linkIn, PASSWORD, testClock, testService } from '#test/harness.ts'
import {
  codeOf,
  cookiesOf,
  type Enrolled,
  enrolTotp,
  pendingSignIn,
  TRUSTED_COOKIE,
} from '#test/second-factor.ts'

const unlimited = { requests: 1_000_000 }
const t = await testService({
  clock: testClock({ isStopped: true }),
  config: {
    rate_limits: {
      enabled: true,
      rules: {
        sign_in: unlimited,
        sign_up: unlimited,
        two_factor: unlimited,
        mail: unlimited,
        default: unlimited,
      },
    },
  },
})
const AUTH = '/api/auth'
const DAY = 86_400_000

/** Signs in with the second factor and has the browser trusted; returns its cookie. */
async function trust(ada: Enrolled): Promise<string> {
  const { token } = (await pendingSignIn(t.anon, ada.email)).body
  const body = { token, code: codeOf(t, ada.secret), trustDevice: true }
  const verified = await t.anon.post(`${AUTH}/two-factor/verify-totp`, body)
  assert.equal(verified.status, 200, verified.text)
  t.advance(30_000)
  return cookieOf(verified)
}
const cookieOf = (answer: Answer): string => cookiesOf(answer)[TRUSTED_COOKIE] ?? ''

const signIn = (email: string, cookie: string, password = PASSWORD) =>
  t.anon.post(
    `${AUTH}/sign-in/email`,
    { email, password },
    { headers: { cookie: `${TRUSTED_COOKIE}=${cookie}` } },
  )
const asks = async ({ email }: Enrolled, cookie: string) =>
  (await signIn(email, cookie)).body.twoFactorRedirect === true

test('a trusted device needs no second factor for 30 days from its last sign-in, and its cookie works once', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const bob = await enrolTotp(t, await t.signUp('Bob'))
  const first = await trust(ada)
  assert.match(first, /^[\w-]{43}$/)
  assert.equal(await asks(bob, first), true, 'of another account')
  t.advance(29 * DAY)
  const renewed = await signIn(ada.email, first)
  assert.deepEqual([renewed.body.user?.id, renewed.body.twoFactorRedirect], [ada.id, undefined])
  assert.match(
    renewed.headers.getSetCookie().find((cookie) => cookie.startsWith(TRUSTED_COOKIE)) ?? '',
    /Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Lax/,
  )
  assert.equal(await asks(ada, first), true, 'the former cookie')
  t.advance(29 * DAY)
  const last = cookieOf(await signIn(ada.email, cookieOf(renewed)))
  t.advance(30 * DAY)
  assert.equal(await asks(ada, last), true, 'expired')
})

test('a change of the password or of the factor, a reset and the end of all sessions end trusted devices', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  let { token } = ada
  let password = PASSWORD
  const post = (path: string, body: object) =>
    t.anon.post(`${AUTH}${path}`, body, { headers: { authorization: `Bearer ${token}` } })
  await t.service.kernel.db
    .updateTable('user')
    .set({ emailVerified: true, emailProvenAt: new Date() })
    .where('id', '=', ada.id)
    .execute()
  const ways: Readonly<Record<string, () => Promise<Answer>>> = {
    'new backup codes': () => post('/two-factor/generate-backup-codes', { password }),
    'a new factor': async () => {
      const begun = await post('/two-factor/enable', { password })
      const secret = new URL(begun.body.totpURI).searchParams.get('secret') ?? ''
      const verified = await post('/two-factor/verify-totp', { code: codeOf(t, secret) })
      token = verified.body.token
      Object.assign(ada, { secret })
      t.advance(30_000)
      return verified
    },
    'change-password': () => post('/change-password', { currentPassword: password, newPassword: PASSWORD }),
    'revoke-sessions': () => post('/revoke-sessions', {}),
    'reset-password': async () => {
      await t.mails()
      await post('/forget-password', { email: ada.email })
      const reset = linkIn((await t.mails()).at(-1) ?? '')
        .split('/')
        .at(-1)
      password = 'a password of the reset'
      return post('/reset-password', { token: reset, newPassword: password })
    },
  }
  for (const [name, end] of Object.entries(ways)) {
    const cookie = await trust(ada)
    assert.equal((await end()).status, 200, name)
    const { body } = await signIn(ada.email, cookie, password)
    assert.equal(body.twoFactorRedirect, true, name)
  }
})
