import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { testService } from '#test/harness.ts'

const t = await testService({ config: { auth: EVERY_FEATURE } })

test('a user does not see that another one is about to get an address', async () => {
  const [ada, eve] = [await t.signUp('Ada'), await t.signUp('Eve')]
  const newEmail = `new-${ada.email}`
  const asked = await ada.post('/api/auth/email-otp/request-email-change', { newEmail })
  assert.equal(asked.status, 200, asked.text)
  const tried = await eve.post('/api/auth/email-otp/change-email', { newEmail, otp: '000000' })
  assert.deepEqual([tried.status, tried.body.code], [400, 'INVALID_OTP'])
})
