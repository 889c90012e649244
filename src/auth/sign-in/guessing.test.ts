import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, PASSWORD, testClock, testService } from '#test/harness.ts'

/** The clock is turned by hand only: on a slow machine a wait must not run out. */
const clock = testClock({ isStopped: true })
const t = await testService({
  clock,
  config: {
    rate_limits: { enabled: true, rules: { sign_in: { requests: 1_000 }, sign_up: { requests: 1_000 } } },
  },
})

const byEmail = (email: string, password: string) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })
const byUsername = (username: string, password: string) =>
  t.anon.post('/api/auth/sign-in/username', { username, password })

const outcome = ({ status, body, headers }: Answer) => [status, body.code, headers.get('retry-after')]
const WAIT = (seconds: number) => [429, 'TOO_MANY_REQUESTS', String(seconds)]

/** A little more, since the limiter cuts off milliseconds. */
const pass = (seconds: number) => clock.advance(seconds * 1_000 + 5)

test('guessing at an account gets slower and slower, whether there is such an account or not', async () => {
  const { email } = await t.signUp('Ada')
  for (const victim of [email, 'nobody@example.com']) {
    const wrong = [401, 'INVALID_EMAIL_OR_PASSWORD', null]
    for (let free = 0; free < 5; free++) assert.deepEqual(outcome(await byEmail(victim, 'wrong')), wrong)
    for (const wait of [1, 2, 4]) {
      assert.deepEqual(outcome(await byEmail(victim, 'wrong')), WAIT(wait), victim)
      // Another spelling is the same account, and the right password does not skip the wait.
      assert.deepEqual(outcome(await byEmail(` ${victim.toUpperCase()}`, PASSWORD)), WAIT(wait), victim)
      pass(wait)
      assert.deepEqual(outcome(await byEmail(victim, 'wrong')), wrong, victim)
    }
  }
})

test('guessing by username is slowed down too', async () => {
  for (let free = 0; free < 5; free++)
    assert.deepEqual(outcome(await byUsername('mallory', 'wrong')), [
      401,
      'INVALID_USERNAME_OR_PASSWORD',
      null,
    ])
  assert.deepEqual(outcome(await byUsername('Mallory', 'wrong')), WAIT(1))
})

test('the right password after a few wrong ones signs in and clears the count', async () => {
  const { email } = await t.signUp('Bob')
  for (let round = 0; round < 2; round++) {
    for (let wrong = 0; wrong < 4; wrong++) assert.equal((await byEmail(email, 'wrong')).status, 401)
    assert.equal((await byEmail(email, PASSWORD)).status, 200)
  }
})

test('a few devices that sign in at once all get in', async () => {
  const { email } = await t.signUp('Eve')
  const answers = await Promise.all(Array.from({ length: 4 }, () => byEmail(email, PASSWORD)))
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array.from({ length: 4 }, () => 200),
  )
})

test('a refused attempt computes no hash', async () => {
  for (let free = 0; free < 5; free++) await byEmail('flooded@example.com', 'wrong')
  const { hashQueue } = t.service.kernel
  const answers = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const answer = await byEmail('flooded@example.com', 'wrong')
      assert.equal(hashQueue.depth(), 0)
      return answer.status
    }),
  )
  assert.deepEqual([...new Set(answers)], [429])
})

test('a guess taken back after its window adds no guess to the next window', async () => {
  const { limits } = t.service.kernel
  const guess = (verdict: () => boolean | undefined) =>
    limits.attempt('sign_in_account', { key: 'late@example.com' }, async () => verdict())
  await guess(() => {
    clock.advance(t.config.rate_limits.rules.sign_in_account.window + 5)
    return undefined
  })
  for (let free = 0; free < 5; free++) await guess(() => false)
  await assert.rejects(
    guess(() => false),
    { status: 429 },
  )
})
