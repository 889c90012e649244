import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { enrolOtp, mailedCode, pendingSignIn } from '#test/second-factor.ts'

const MANY = { requests: 1_000 }
const rules = { mail: MANY, two_factor: MANY, mail_recipient: { requests: 2 } }
const t = await testService({ config: { rate_limits: { enabled: true, rules } } })
const AUTH = '/api/auth'

test('links that a stranger asks for do not use up the codes of a sign-in by mail', async () => {
  const ada = await enrolOtp(t, await t.signUp('Ada'))
  for (const _ of [1, 2, 3, 4]) await t.anon.post(`${AUTH}/forget-password`, { email: ada.email })
  const links = (await t.mails()).filter((mail) => mail.includes('reset-password'))
  assert.ok(links.length <= 2)
  const { token } = (await pendingSignIn(t.anon, ada.email)).body
  assert.equal((await t.anon.post(`${AUTH}/two-factor/send-otp`, { token })).status, 200)
  const code = mailedCode(await t.mails())
  assert.equal((await t.anon.post(`${AUTH}/two-factor/verify-otp`, { token, code })).status, 200)
  const next = (await pendingSignIn(t.anon, ada.email)).body.token
  await t.anon.post(`${AUTH}/two-factor/send-otp`, { token: next })
  assert.deepEqual(await t.mails(), [], 'codes have a limit, too')
})
