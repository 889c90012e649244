import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { DEVICE_CLIENTS, deviceOf } from '#test/devices.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { type Actor, actor, confirm, linkIn, testService } from '#test/harness.ts'
import { codeIn } from '#test/mailed-codes.ts'
import { cookiesOf, enrolTotp, SESSION_COOKIE } from '#test/second-factor.ts'

const t = await testService({
  config: {
    auth: { ...EVERY_FEATURE, one_time_token: { enabled: true }, device: { clients: DEVICE_CLIENTS } },
  },
})
const AUTH = '/api/auth'
const bearer = (token: string | undefined) => actor(t.url, { authorization: `Bearer ${token}` })
async function claimsOf(who: Actor) {
  const { status, body, text } = await who.get(`${AUTH}/token`)
  assert.equal(status, 200, text)
  return decodeJwt(body.token)
}
async function byOneTimeToken(who: Actor): Promise<Actor> {
  const { token } = (await who.get(`${AUTH}/one-time-token/generate`)).body
  return bearer((await t.anon.post(`${AUTH}/one-time-token/verify`, { token })).body.session.token)
}

test('a session that another one has vouched for says what that one has shown, and when', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const { amr, auth_time } = await claimsOf(ada)
  assert.deepEqual(amr, ['pwd', 'otp', 'mfa'])
  t.advance(60_000)
  for (const derived of [await byOneTimeToken(ada), await deviceOf(t, ada)])
    assert.partialDeepStrictEqual(await claimsOf(derived), { sub: ada.id, amr, auth_time })
})

test('a session by mail has shown none of the methods that have a name', async () => {
  const email = 'bea@example.com'
  await t.anon.post(`${AUTH}/sign-in/magic-link`, { email, name: 'Bea' })
  const mail = (await t.mails()).find((one) => one.toLowerCase().includes(`to: ${email}`)) ?? ''
  const byLink = bearer(cookiesOf(await confirm(t.anon, linkIn(mail)))[SESSION_COOKIE])
  assert.deepEqual((await claimsOf(byLink)).amr, [])
  await t.anon.post(`${AUTH}/email-otp/send-verification-otp`, { email, type: 'sign-in' })
  const [latest = ''] = (await t.mails())
    .filter((one) => one.toLowerCase().includes(`to: ${email}`))
    .slice(-1)
  const { body } = await t.anon.post(`${AUTH}/sign-in/email-otp`, { email, otp: codeIn(latest) })
  assert.deepEqual((await claimsOf(bearer(body.token))).amr, [])
})
