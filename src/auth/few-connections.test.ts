import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'

/** Two connections, and limits that are never reached. */
const many = { requests: 1_000, window: 60_000 }
const t = await testService({
  config: {
    database: { max_connections: 2 },
    rate_limits: { enabled: true, rules: { sign_up: many, mail: many, mail_recipient: many } },
    auth: { email: { send_on_sign_up: true } },
  },
})

test('a verb that counts a mail inside its transaction waits for no second connection', async () => {
  const ada = await t.signUp('Ada')
  const asked = Array.from({ length: 12 }, (_, index) =>
    ada.post('/api/auth/change-email', { newEmail: `ada-${index}@example.com` }),
  )
  assert.deepEqual([...new Set((await Promise.all(asked)).map(({ status }) => status))], [200])
  const signUps = Array.from({ length: 12 }, (_, index) => t.signUp(`Bob${index}`))
  assert.equal((await Promise.all(signUps)).length, 12)
})
