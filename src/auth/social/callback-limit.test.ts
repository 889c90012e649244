import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'

const FEW = { requests: 3, window: 600_000 }
const t = await testService({ config: { rate_limits: { enabled: true, rules: { default: FEW } } } })

test('the way back from a provider counts in the limit of its address, with a session or without', async () => {
  const ada = await t.signUp('Ada')
  const comeBack = async () => (await ada.get('/api/auth/callback/github?code=guess&state=guess')).status
  for (let visit = 0; visit < FEW.requests; visit++) assert.equal(await comeBack(), 302)
  assert.equal(await comeBack(), 429)
})
