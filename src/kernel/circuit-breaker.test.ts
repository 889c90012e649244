import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCircuitBreaker } from './circuit-breaker.ts'
import { Failure } from './errors.ts'

function atHand() {
  const clock = { now: 0 }
  const breaker = createCircuitBreaker(
    () => clock.now,
    (wait) => new Failure('down', 503, `${wait} ms left`),
  )
  const tryAt = (now: number): boolean => {
    clock.now = now
    return breaker.allows()
  }
  return { clock, breaker, tryAt }
}

test('attempts that fail together count as one failure: the next probe is after a second, not half a minute', () => {
  const { breaker, tryAt } = atHand()
  for (let attempt = 0; attempt < 10; attempt++) assert.ok(tryAt(0))
  for (let attempt = 0; attempt < 10; attempt++) breaker.failed()
  assert.deepEqual([breaker.state(), breaker.wait(), tryAt(999)], ['open', 1_000, false])
  assert.ok(tryAt(1_000))
})

test('one probe at a time is allowed, each failure doubles the wait up to 30 s, a success closes the circuit', () => {
  const { clock, breaker, tryAt } = atHand()
  const waits: number[] = []
  for (let round = 0; round < 7; round++) {
    assert.ok(tryAt(clock.now + breaker.wait()))
    assert.equal(tryAt(clock.now), round === 0, 'a second caller')
    breaker.failed()
    waits.push(breaker.wait())
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  assert.ok(tryAt(clock.now + 30_000))
  assert.equal(breaker.state(), 'half_open')
  breaker.succeeded()
  assert.equal(breaker.state(), 'closed')
  assert.ok(tryAt(clock.now) && tryAt(clock.now))
})

test('after an undecided probe the next caller probes', () => {
  const { breaker, tryAt } = atHand()
  breaker.failed()
  assert.ok(tryAt(1_000))
  assert.equal(tryAt(1_000), false)
  breaker.undecided()
  assert.deepEqual([breaker.state(), tryAt(1_000), tryAt(1_000)], ['half_open', true, false])
})
