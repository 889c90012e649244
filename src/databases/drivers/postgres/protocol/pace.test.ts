import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pace } from '#databases/drivers/postgres/protocol/pace.ts'

/** So many answers, each this long after the one before; sent when the one `ahead` of it was answered, on a way of `trip`. */
function paceOf({
  answers = 200,
  every,
  ahead,
  trip,
}: {
  answers?: number
  every: number
  ahead: number
  trip: number
}): Pace {
  const pace = new Pace()
  // The first has nobody in front of it.
  pace.answered(500, 500 + trip + every)
  for (let index = 1; index <= answers; index++) {
    const now = 1_000 + index * every
    pace.answered(Math.min(now - every - trip, 1_000 + (index - ahead) * every), now)
  }
  return pace
}

test('a server that answers quickly gets many at once, one that is slow gets one', () => {
  assert.equal(paceOf({ every: 0.02, ahead: 16, trip: 0.1 }).depth(), 32)
  assert.equal(paceOf({ every: 0.16, ahead: 16, trip: 0.1 }).depth(), 12)
  assert.equal(paceOf({ every: 0.45, ahead: 16, trip: 0.1 }).depth(), 4)
  assert.equal(paceOf({ every: 8, ahead: 30, trip: 0.1 }).depth(), 1)
})

test('a long way is not taken for slow work', () => {
  assert.equal(paceOf({ every: 120, ahead: 1, trip: 120 }).depth(), 32)
  const pace = new Pace()
  pace.answered(0, 120)
  pace.answered(200, 321)
  assert.equal(pace.begun(400), 520)
})

test('one long wait does not end the sharing for long', () => {
  const pace = paceOf({ every: 0.02, ahead: 16, trip: 0.1 })
  pace.answered(2_000, 2_500)
  assert.ok(pace.depth() >= 3)
  for (let index = 0; index < 50; index++) pace.answered(3_000 + index, 3_000.1 + index)
  assert.ok(pace.depth() > 16)
})
