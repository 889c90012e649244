import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '#kernel/errors.ts'
import { controlDatabase, testClock, testKernel } from '#test/harness.ts'
import type { Limits } from './limits.ts'

const config = { rate_limits: { enabled: true } }
const controlUrl = await controlDatabase()
/** No time passes but by hand: a slow machine must not sit out a wait. */
const clock = testClock({ isStopped: true })
/** As two processes on one database are. */
const first = await testKernel({ controlUrl, config, clock })
const second = await testKernel({ controlUrl, config, clock })

/** Seconds to wait, or what the check said. */
async function guess({ limits }: { limits: Limits }, key: string, right = false): Promise<boolean | number> {
  try {
    return await limits.attempt('sign_in_account', key, async () => right)
  } catch (error) {
    assert.ok(error instanceof Failure && error.status === 429, String(error))
    assert.equal(error.headers?.['x-retry-after'], error.headers?.['retry-after'])
    return Number(error.headers?.['retry-after'])
  }
}

/** A little more, since the limiter cuts off milliseconds. */
const pass = (seconds: number) => clock.advance(seconds * 1_000 + 5)

const counted = async (): Promise<number> =>
  (await first.db.selectFrom('rateLimit').selectAll().execute()).length

test('five wrong guesses are free, then the wait doubles, and after ten it lasts until the window is over', async () => {
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

test('waiting counts for nothing: whoever asks too early gains no wait', async () => {
  for (let free = 0; free < 5; free++) await guess(first, 'bob')
  for (let early = 0; early < 20; early++) assert.equal(await guess(second, 'bob'), 1)
  pass(1)
  assert.equal(await guess(first, 'bob'), false)
  assert.equal(await guess(first, 'bob'), 2)
})

test('a right guess clears the account, and other accounts never noticed', async () => {
  for (let wrong = 0; wrong < 5; wrong++) await guess(first, 'eve')
  assert.equal(await guess(first, 'mallory', true), true)
  pass(1)
  const before = await counted()
  assert.equal(await guess(second, 'eve', true), true)
  assert.equal(await counted(), before - 2)
  for (let wrong = 0; wrong < 5; wrong++) assert.equal(await guess(first, 'eve'), false)
  assert.equal(await guess(first, 'eve'), 1)
})

test('a hundred guesses at once in two processes get no further than one after another', async () => {
  const flood = Array.from({ length: 100 }, (_, index) => guess(index % 2 === 0 ? first : second, 'victim'))
  const passed = (await Promise.all(flood)).filter((verdict) => verdict === false)
  assert.ok(passed.length >= 4 && passed.length <= 5, `${passed.length} passed`)
})

test('when a wait is over, one of a hundred at once gets the turn', async () => {
  for (let free = 0; free < 5; free++) await guess(first, 'trent')
  pass(1)
  const flood = Array.from({ length: 100 }, (_, index) => guess(index % 2 === 0 ? first : second, 'trent'))
  const passed = (await Promise.all(flood)).filter((verdict) => verdict === false)
  assert.equal(passed.length, 1)
})

test('a guess that could not be checked is not counted', async () => {
  const broken = () =>
    first.limits.attempt('sign_in_account', 'walter', () => Promise.reject(new Error('too busy')))
  for (let failed = 0; failed < 20; failed++) await assert.rejects(broken, /too busy/)
  for (let free = 0; free < 5; free++) assert.equal(await guess(second, 'walter'), false)
  pass(1)
  await assert.rejects(broken, /too busy/)
  assert.equal(await guess(second, 'walter'), false)
})

test('without rate limits every guess is checked', async () => {
  const free = await testKernel({ controlUrl, config: { rate_limits: { enabled: false } } })
  for (let wrong = 0; wrong < 30; wrong++) assert.equal(await guess(free, 'ada'), false)
  assert.equal(await guess(free, 'ada', true), true)
})
