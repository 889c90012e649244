import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthenticator, type Fault } from '#test/authenticator.ts'
import { type Answer, testService, type User } from '#test/harness.ts'

const PATH = '/api/auth/passkey'
const APP = 'https://app.example.com'
const ANDROID = `android:apk-key-hash:${'A'.repeat(43)}`

const t = await testService({
  config: {
    auth: {
      passkey: { rp_id: 'example.com', origins: [APP, ANDROID], require_user_verification: true },
    },
  },
})
/** The browser knows it by an IP address. */
const numeric = await testService({ config: { server: { public_url: 'http://192.0.2.1' } } })

/** Registers a passkey in a page of this origin, signs in with it, and returns both answers. */
async function useNewPasskey(
  user: User,
  origin: string,
  { registration, assertion }: { registration?: Fault; assertion?: Fault } = {},
): Promise<readonly [Answer, Answer | undefined]> {
  const authenticator = createAuthenticator()
  const { body: creation } = await user.get(`${PATH}/generate-register-options`)
  const created = await user.post(`${PATH}/verify-registration`, {
    response: authenticator.create(creation, origin, registration),
    challengeId: creation.challengeId,
  })
  if (created.status !== 200) return [created, undefined]
  const { body: request } = await t.anon.get(`${PATH}/generate-authenticate-options`)
  const signedIn = await t.anon.post(`${PATH}/verify-authentication`, {
    response: authenticator.get(request, origin, assertion),
    challengeId: request.challengeId,
  })
  return [created, signedIn]
}

test('rp_id, origins and user verification are settings, and an unproven address gets no notice', async () => {
  const ada = await t.signUp('Ada')
  const { body: options } = await ada.get(
    `${PATH}/generate-register-options?authenticatorAttachment=platform`,
  )
  assert.deepEqual(options.rp, { id: 'example.com', name: 'example.com' })
  const { authenticatorAttachment, userVerification } = options.authenticatorSelection
  assert.deepEqual([authenticatorAttachment, userVerification], ['platform', 'required'])
  for (const origin of [APP, ANDROID])
    assert.deepEqual(
      (await useNewPasskey(ada, origin)).map((answer) => answer?.status),
      [200, 200],
      origin,
    )
  const [foreign] = await useNewPasskey(ada, t.service.kernel.publicUrl())
  assert.equal(foreign.body.code, 'FAILED_TO_VERIFY_REGISTRATION')
  const [unverified] = await useNewPasskey(ada, APP, { registration: { userVerified: false } })
  assert.equal(unverified.body.code, 'FAILED_TO_VERIFY_REGISTRATION')
  const [, refused] = await useNewPasskey(ada, APP, { assertion: { userVerified: false } })
  assert.deepEqual([refused?.status, refused?.body.code], [401, 'AUTHENTICATION_FAILED'])
  assert.equal((await ada.get(`${PATH}/list-user-passkeys`)).body.length, 3)
  assert.deepEqual(await t.mails(), [])
})

test('at an IP address the ceremonies answer that passkeys need a domain', async () => {
  const ada = await numeric.signUp('Ada')
  const authenticator = createAuthenticator()
  const creation = { challenge: 'AA', rp: { id: 'localhost' }, user: { id: 'AA' } }
  const attestation = authenticator.create(creation, 'http://192.0.2.1')
  const assertion = authenticator.get({ challenge: 'AA', rpId: 'localhost' }, 'http://192.0.2.1')
  const answers = [
    await ada.get(`${PATH}/generate-register-options`),
    await ada.post(`${PATH}/verify-registration`, { response: attestation, challengeId: 'x' }),
    await numeric.anon.post(`${PATH}/generate-authenticate-options`),
    await numeric.anon.post(`${PATH}/verify-authentication`, { response: assertion, challengeId: 'x' }),
  ]
  for (const { status, body } of answers)
    assert.deepEqual([status, body.code], [400, 'PASSKEY_RP_ID_INVALID'])
  assert.deepEqual((await ada.get(`${PATH}/list-user-passkeys`)).body, [])
})
