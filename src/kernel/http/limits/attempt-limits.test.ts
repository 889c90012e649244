import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '#kernel/errors.ts'
import { controlDatabase, testClock, testKernel } from '#test/harness.ts'
import type { RateLimits } from './limits.ts'

const config = { rate_limits: { enabled: true } }
const controlUrl = await controlDatabase()
/** Time passes only by hand, so that no wait passes on a slow machine. */
const clock = testClock({ isStopped: true })
/** Like two processes on one database. */
const first = await testKernel({ controlUrl, config, clock })
const second = await testKernel({ controlUrl, config, clock })

/** Seconds to wait, or the result of the check. */
async function guess(
  { limits }: { limits: RateLimits },
  key: string,
  right = false,
  total?: string,
): Promise<boolean | number> {
  try {
    return await limits.attempt('sign_in_account', { key, total }, async () => right)
  } catch (error) {
    assert.ok(error instanceof Failure && error.status === 429, String(error))
    assert.equal(error.headers?.['x-retry-after'], error.headers?.['retry-after'])
    return Number(error.headers?.['retry-after'])
  }
}

/** With a tolerance, since the limiter truncates milliseconds. */
const pass = (seconds: number) => clock.advance(seconds * 1_000 + 5)

const counted = async (): Promise<number> =>
  (await first.db.selectFrom('rateLimit').selectAll().execute()).length

test('five wrong attempts are free, then the wait doubles, and after ten it lasts until the end of the window', async () => {
  for (let free = 0; free < 5; free++) assert.equal(await guess(first, 'ada'), false)
  for (const wait of [1, 2, 4, 8, 16]) {
    assert.equal(await guess(first, 'ada'), wait)
    assert.equal(await guess(second, 'ada', true), wait, 'whether it is right is not even looked at')
    pass(wait)
    assert.equal(await guess(second, 'ada'), false)
  }
  const rest = await guess(first, 'ada')
  assert.equal(rest, 900 - 31)
  pass(868)
  assert.equal(await guess(first, 'ada', true), 1)
  pass(1)
  assert.equal(await guess(first, 'ada', true), true)
})

test('an attempt during a wait is not counted and does not extend the wait', async () => {
  for (let free = 0; free < 5; free++) await guess(first, 'bob')
  for (let early = 0; early < 20; early++) assert.equal(await guess(second, 'bob'), 1)
  pass(1)
  assert.equal(await guess(first, 'bob'), false)
  assert.equal(await guess(first, 'bob'), 2)
})

test('a right attempt clears the account and does not affect other accounts', async () => {
  for (let wrong = 0; wrong < 5; wrong++) await guess(first, 'eve')
  assert.equal(await guess(first, 'mallory', true), true)
  pass(1)
  const before = await counted()
  assert.equal(await guess(second, 'eve', true), true)
  assert.equal(await counted(), before - 2)
  for (let wrong = 0; wrong < 5; wrong++) assert.equal(await guess(first, 'eve'), false)
  assert.equal(await guess(first, 'eve'), 1)
})

test('a hundred concurrent attempts in two processes are limited like consecutive ones', async () => {
  const flood = Array.from({ length: 100 }, (_, index) => guess(index % 2 === 0 ? first : second, 'victim'))
  const passed = (await Promise.all(flood)).filter((verdict) => verdict === false)
  assert.ok(passed.length >= 4 && passed.length <= 5, `${passed.length} passed`)
})

test('after a wait, one of a hundred concurrent attempts passes', async () => {
  for (let free = 0; free < 5; free++) await guess(first, 'trent')
  pass(1)
  const flood = Array.from({ length: 100 }, (_, index) => guess(index % 2 === 0 ? first : second, 'trent'))
  const passed = (await Promise.all(flood)).filter((verdict) => verdict === false)
  assert.equal(passed.length, 1)
})

test('several buckets with one total have five times the attempts of one, also in two processes at once', async () => {
  const flood = Array.from({ length: 120 }, (_, index) =>
    guess(index % 2 === 0 ? first : second, `session ${index >> 1}`, false, 'oscar'),
  )
  const passed = (await Promise.all(flood)).filter((verdict) => verdict === false)
  assert.equal(passed.length, 50)
  assert.equal(await guess(first, 'another session', true, 'oscar'), 900)
  assert.equal(await guess(first, 'strangers'), false)
})

test('a flood in one bucket leaves the total to the others', async () => {
  const flood = Array.from({ length: 200 }, (_, index) =>
    guess(index % 2 === 0 ? first : second, 'stolen', false, 'grace'),
  )
  await Promise.all(flood)
  for (let free = 0; free < 5; free++) assert.equal(await guess(first, 'own', false, 'grace'), false)
})

test('right attempts and those that could not be checked do not count in the total', async () => {
  for (let round = 0; round < 60; round++) {
    assert.equal(await guess(first, `device ${round}`, true, 'ruth'), true)
    const bucket = { key: `device ${round}`, total: 'ruth' }
    await second.limits.attempt('sign_in_account', bucket, async () => undefined)
  }
  assert.equal(await guess(first, 'last', false, 'ruth'), false)
})

test('a bucket that is cleared has all its attempts again', async () => {
  for (let wrong = 0; wrong < 5; wrong++) await guess(first, 'sybil')
  assert.equal(await guess(second, 'sybil'), 1)
  await second.limits.clear('sign_in_account', 'sybil')
  for (let free = 0; free < 5; free++) assert.equal(await guess(first, 'sybil'), false)
})

test('an attempt that could not be checked is not counted', async () => {
  const broken = () =>
    first.limits.attempt('sign_in_account', { key: 'walter' }, () => Promise.reject(new Error('too busy')))
  for (let failed = 0; failed < 20; failed++) await assert.rejects(broken, /too busy/)
  for (let free = 0; free < 5; free++) assert.equal(await guess(second, 'walter'), false)
  pass(1)
  await assert.rejects(broken, /too busy/)
  assert.equal(await guess(second, 'walter'), false)
})

test('a wait from before the clock of the database was set back is over', async () => {
  for (let free = 0; free < 5; free++) assert.equal(await guess(first, 'peggy'), false)
  assert.equal(await guess(first, 'peggy'), 1)
  pass(-30 * 86_400)
  for (let free = 0; free < 5; free++) assert.equal(await guess(second, 'peggy'), false)
  assert.equal(await guess(second, 'peggy'), 1)
})

test('without rate limits every attempt is checked', async () => {
  const free = await testKernel({ controlUrl, config: { rate_limits: { enabled: false } } })
  for (let wrong = 0; wrong < 30; wrong++) assert.equal(await guess(free, 'ada'), false)
  assert.equal(await guess(free, 'ada', true), true)
})
