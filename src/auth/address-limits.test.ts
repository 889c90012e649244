import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import pg from 'pg'
import { PASSWORD, testService } from '#test/harness.ts'

const FEW = { requests: 3, window: 60_000 }

/** Counts statements on users, sessions and limits while the work runs, but not those by which processes exchange their counts every second. */
async function asked(work: () => Promise<unknown>): Promise<number> {
  const query = mock.method(pg.Client.prototype, 'query')
  try {
    await work()
    return query.mock.calls.filter(({ arguments: [statement] }) => {
      const text = typeof statement === 'string' ? statement : (statement as { text?: string }).text
      return /service\.("user"|session|rate_limit)/.test(text ?? '') && !/with counted as/.test(text ?? '')
    }).length
  } finally {
    query.mock.restore()
  }
}

test('an address that has used up a limit is refused without a statement, with a credential or without', async () => {
  const t = await testService({ config: { rate_limits: { enabled: true, rules: { sign_in: FEW } } } })
  const ada = await t.signUp('Ada')
  const signIn = () => t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  assert.ok((await asked(signIn)) > 0, 'the counter sees statements')
  for (let more = 1; more < FEW.requests; more++) assert.equal((await signIn()).status, 200)
  const change = () =>
    // An unknown token is in no cache.
    t.anon.post(
      '/api/auth/change-password',
      { currentPassword: PASSWORD, newPassword: PASSWORD },
      { headers: { authorization: `Bearer ${'A'.repeat(43)}` } },
    )
  for (const ask of [signIn, change]) {
    assert.equal(
      await asked(async () => {
        for (let round = 0; round < 3; round++) assert.equal((await ask()).status, 429)
      }),
      0,
    )
  }
  assert.equal((await ada.get('/api/auth/get-session')).status, 200, 'other limits are not affected')
})

test('an address that has guessed too many tokens is refused without a query, and a cached session is not refused', async () => {
  const t = await testService({ config: { rate_limits: { enabled: true, rules: { default: FEW } } } })
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  let tokens = 0
  const guess = () => {
    const token = String(++tokens).padStart(43, 'A')
    return t.anon.get('/api/auth/get-session', { headers: { authorization: `Bearer ${token}` } })
  }
  assert.equal(await asked(guess), 1)
  for (let more = 1; more < FEW.requests; more++) assert.equal((await guess()).status, 401)
  assert.equal(await asked(async () => assert.equal((await guess()).status, 429)), 0)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
})
