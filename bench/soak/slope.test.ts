import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../statistics.ts'
import { secondHalf, slopeOf } from './slope.ts'

const minutes = (count: number, mib: (minute: number) => number) =>
  Array.from({ length: count * 30 + 1 }, (_, index) => ({ seconds: index * 2, mib: mib(index / 30) }))

test('memory that rises by two MiB a minute has that slope, without an error', () => {
  const { perMinute, error } = slopeOf(minutes(5, (minute) => 200 + 2 * minute))
  assert.ok(Math.abs(perMinute - 2) < 1e-9 && error < 1e-9, `${perMinute} ± ${error}`)
})

test('a saw of garbage has a slope within its error', () => {
  const random = createRandom(7)
  const { perMinute, error } = slopeOf(minutes(5, () => 200 + 20 * random()))
  assert.ok(Math.abs(perMinute) < 3 * error && error < 0.5, `${perMinute} ± ${error}`)
})

test('what memory did in the first half does not count', () => {
  const samples = minutes(10, (minute) => (minute < 5 ? 100 + 20 * minute : 200))
  assert.ok(slopeOf(samples).perMinute > 5)
  assert.equal(slopeOf(secondHalf(samples)).perMinute, 0)
})
