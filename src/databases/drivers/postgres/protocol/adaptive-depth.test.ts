import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AdaptiveDepth } from '#databases/drivers/postgres/protocol/adaptive-depth.ts'

/** Simulates answers `every` milliseconds, `ahead` of them pipelined, with a round trip of `trip`. */
function depthOf({
  answers = 200,
  every,
  ahead,
  trip,
}: {
  answers?: number
  every: number
  ahead: number
  trip: number
}): AdaptiveDepth {
  const depth = new AdaptiveDepth()
  // Nothing is queued before the first one.
  depth.answered(500, 500 + trip + every)
  for (let index = 1; index <= answers; index++) {
    const now = 1_000 + index * every
    depth.answered(Math.min(now - every - trip, 1_000 + (index - ahead) * every), now)
  }
  return depth
}

test('a fast server gets many statements at once, a slow one gets one', () => {
  assert.equal(depthOf({ every: 0.02, ahead: 16, trip: 0.1 }).current(), 32)
  assert.equal(depthOf({ every: 0.16, ahead: 16, trip: 0.1 }).current(), 12)
  assert.equal(depthOf({ every: 0.45, ahead: 16, trip: 0.1 }).current(), 4)
  assert.equal(depthOf({ every: 8, ahead: 30, trip: 0.1 }).current(), 1)
})

test('a long round trip does not count as slow work', () => {
  assert.equal(depthOf({ every: 120, ahead: 1, trip: 120 }).current(), 32)
  const depth = new AdaptiveDepth()
  depth.answered(0, 120)
  depth.answered(200, 321)
  assert.equal(depth.begun(400), 520)
})

test('one long wait does not stop sharing for long', () => {
  const depth = depthOf({ every: 0.02, ahead: 16, trip: 0.1 })
  depth.answered(2_000, 2_500)
  assert.ok(depth.current() >= 3)
  for (let index = 0; index < 50; index++) depth.answered(3_000 + index, 3_000.1 + index)
  assert.ok(depth.current() > 16)
})
