import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, PASSWORD, testService } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { createVisitor, person } from '#test/identity-provider/visits.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { cookiesOf, enrolTotp, SESSION_COOKIE } from '#test/second-factor.ts'

const COOKIE = 'better-auth.last_used_login_method'
const { t, idp, idToken } = await startSocialService({ last_login_method: { enabled: true } })
const passkeys = ceremoniesOf(t)

const methodOf = (answer: Answer): string | undefined => cookiesOf(answer)[COOKIE]
const signIn = (body: object, way = 'email') => t.anon.post(`/api/auth/sign-in/${way}`, body)

test('a sign-in tells the browser its method, in a cookie that pages can read', async () => {
  const email = 'ada@example.com'
  const ada = { name: 'Ada', username: 'ada', email, password: PASSWORD }
  assert.equal(methodOf(await t.anon.post('/api/auth/sign-up/email', ada)), 'email')
  const answer = await signIn({ email, password: PASSWORD })
  const cookie = answer.headers.getSetCookie().find((one) => one.startsWith(COOKIE))
  assert.equal(cookie, `${COOKIE}=email; Max-Age=2592000; Path=/; Secure; SameSite=Lax`)
  assert.equal(methodOf(await signIn({ username: 'ada', password: PASSWORD }, 'username')), 'username')
  assert.equal(methodOf(await signIn({ email, password: 'wrong password' })), undefined)

  const { authenticator } = await passkeys.newUser()
  assert.equal(methodOf(await passkeys.signIn(authenticator)), 'passkey')

  idp.visitor = person('Bea')
  const visitor = createVisitor(t)
  assert.equal(await visitor.signIn(), '/app')
  assert.equal(visitor.cookie(COOKIE), 'acme')
  const token = await idToken({ sub: 'cem', email: 'cem@example.com', email_verified: true })
  assert.equal(methodOf(await signIn({ provider: 'acme', idToken: { token } }, 'social')), 'acme')
})

test('the first step of a sign-in with two factors tells it', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const answer = await signIn({ email: ada.email, password: PASSWORD })
  assert.equal(answer.body.twoFactorRedirect, true)
  assert.deepEqual([methodOf(answer), cookiesOf(answer)[SESSION_COOKIE]], ['email', ''])
})

test('name and lifetime of the cookie are settings, and without them there is none', async () => {
  const own = await testService({
    config: { auth: { last_login_method: { enabled: true, cookie_name: 'last-way', max_age: 60_000 } } },
  })
  const off = await testService()
  const cookies = async (service: typeof own) => {
    const { email } = await service.signUp('Ada')
    const answer = await service.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
    return answer.headers.getSetCookie().filter((cookie) => /last/.test(cookie))
  }
  assert.deepEqual(await cookies(own), ['last-way=email; Max-Age=60; Path=/; Secure; SameSite=Lax'])
  assert.deepEqual(await cookies(off), [])
})
