import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secureRandom } from '#kernel/random.ts'
import { delayAfter } from './retry-schedule.ts'

const DELAYS = [0, 5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000]

test('there are eight attempts; each delay is up to a fifth longer or shorter', () => {
  const [shortest, longest] = [() => Buffer.alloc(4), () => Buffer.alloc(4, 0xff)]
  assert.deepEqual(
    DELAYS.map((_, made) => delayAfter(made, shortest)),
    DELAYS.map((delay) => delay * 0.8),
  )
  assert.deepEqual(
    DELAYS.map((_, made) => delayAfter(made, longest)),
    DELAYS.map((delay) => delay * 1.2),
  )
  assert.equal(delayAfter(8, secureRandom), undefined)
})

test('delays are spread over the whole range', () => {
  const delays = Array.from({ length: 500 }, () => delayAfter(2, secureRandom) ?? 0)
  for (const delay of delays) assert.ok(delay >= 240_000 && delay <= 360_000)
  assert.ok(Math.min(...delays) < 246_000 && Math.max(...delays) > 354_000)
})
