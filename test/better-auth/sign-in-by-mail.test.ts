import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthClient } from 'better-auth/client'
import { emailOTPClient, magicLinkClient } from 'better-auth/client/plugins'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { linkIn, PASSWORD, testService } from '#test/harness.ts'
import { codeIn, otherThan } from '#test/mailed-codes.ts'
import { CARRIERS, done, newUser, refused } from './clients.ts'
import { createCookieFetch, createPlainFetch } from './fetches.ts'

const t = await testService({ config: { auth: EVERY_FEATURE } })
const NEW_PASSWORD = 'battery staple horse'

function newClient(by: (typeof CARRIERS)[number]) {
  let token = ''
  const { fetch: customFetchImpl } = by === 'cookie' ? createCookieFetch() : createPlainFetch()
  const auth = { type: 'Bearer', token: () => token } as const
  const onResponse = ({ response }: { response: Response }) => {
    token = response.headers.get('set-auth-token') ?? token
  }
  return createAuthClient({
    baseURL: t.url,
    fetchOptions: { customFetchImpl, ...(by === 'Bearer' && { auth, onResponse }) },
    plugins: [magicLinkClient(), emailOTPClient()],
  })
}

const mailTo = async (email: string): Promise<string> => {
  const mail = (await t.mails()).findLast((one) => one.toLowerCase().includes(`to: ${email}`))
  assert.ok(mail, `no mail to ${email}`)
  return mail
}

for (const by of CARRIERS) {
  const who = `better-auth 1.7.7 by ${by}`

  test(`${who}: signs in by the token of a link`, async () => {
    const client = newClient(by)
    const { email } = newUser()
    const asked = { email, name: 'Ada', callbackURL: '/app', errorCallbackURL: '/failed' }
    assert.equal(done(await client.signIn.magicLink(asked))?.status, true)
    const token = new URL(linkIn(await mailTo(email)), t.url).searchParams.get('token') ?? ''
    const entered = done(await client.magicLink.verify({ query: { token } }))
    assert.equal(entered?.user.email, email)
    assert.equal(done(await client.getSession())?.user.email, email)
    const used = refused(await client.magicLink.verify({ query: { token } }))
    assert.deepEqual([used.status, used.code], [401, 'INVALID_TOKEN'])
  })

  test(`${who}: signs in, verifies the address and resets the password by codes`, async () => {
    const client = newClient(by)
    const { email, password, name } = newUser()
    done(await client.signUp.email({ email, password, name }))
    assert.equal(
      done(await client.emailOtp.sendVerificationOtp({ email, type: 'email-verification' }))?.success,
      true,
    )
    const otp = codeIn(await mailTo(email))
    const wrong = refused(await client.emailOtp.verifyEmail({ email, otp: otherThan(otp) }))
    assert.deepEqual([wrong.status, wrong.code], [400, 'INVALID_OTP'])
    const verified = done(await client.emailOtp.verifyEmail({ email, otp }))
    assert.deepEqual([verified?.status, verified?.user.emailVerified], [true, true])
    assert.equal(done(await client.getSession())?.user.emailVerified, true)

    done(await client.emailOtp.requestPasswordReset({ email }))
    const reset = codeIn(await mailTo(email))
    assert.equal(
      done(await client.emailOtp.checkVerificationOtp({ email, type: 'forget-password', otp: reset }))
        ?.success,
      true,
    )
    done(await client.emailOtp.resetPassword({ email, otp: reset, password: NEW_PASSWORD }))
    assert.equal(refused(await client.signIn.email({ email, password: PASSWORD })).status, 401)
    done(await client.forgetPassword.emailOtp({ email }))
    done(await client.emailOtp.resetPassword({ email, otp: codeIn(await mailTo(email)), password: PASSWORD }))

    done(await client.emailOtp.sendVerificationOtp({ email, type: 'sign-in' }))
    const entered = done(await client.signIn.emailOtp({ email, otp: codeIn(await mailTo(email)) }))
    assert.equal(entered?.user.email, email)
    assert.equal(done(await client.getSession())?.session.token, entered?.token)
  })

  test(`${who}: changes the address by codes`, async () => {
    const client = newClient(by)
    const { email, name } = newUser()
    done(await client.emailOtp.sendVerificationOtp({ email, type: 'sign-in' }))
    done(await client.signIn.emailOtp({ email, otp: codeIn(await mailTo(email)), name }))
    const newEmail = `new-${email}`
    done(await client.emailOtp.sendVerificationOtp({ email, type: 'email-verification' }))
    const otp = codeIn(await mailTo(email))
    assert.equal(done(await client.emailOtp.requestEmailChange({ newEmail, otp }))?.success, true)
    done(await client.emailOtp.changeEmail({ newEmail, otp: codeIn(await mailTo(newEmail)) }))
    assert.equal(done(await client.getSession())?.user.email, newEmail)
  })
}
