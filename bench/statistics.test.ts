import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bootstrap, createRandom, median, quantile, ratios } from './statistics.ts'

test('the median of an even number of values lies between the two in the middle', () => {
  assert.equal(median([4, 1, 3, 2]), 2.5)
  assert.equal(median([7, 1, 100]), 7)
  assert.ok(Number.isNaN(median([])))
})

test('a quantile lies linearly between its neighbours', () => {
  assert.equal(quantile([0, 10], 0.9), 9)
  assert.equal(quantile([3, 1, 2], 1), 3)
})

test('a round that one side lacks has no ratio', () => {
  assert.deepEqual(ratios([2, 6, 9], [1, Number.NaN]), [2])
})

test('the same seed gives the same interval, and another seed almost the same', () => {
  const values = [0.97, 1.02, 0.99, 1.01, 1, 0.98, 1.03, 1.01, 0.99]
  assert.deepEqual(bootstrap(values, 7), bootstrap(values, 7))
  const { low, middle, high } = bootstrap(values, 8)
  assert.equal(middle, 1)
  assert.ok(low >= 0.97 && low < 1 && high > 1 && high <= 1.03, `${low} to ${high}`)
})

test('most intervals hold the true median', () => {
  const random = createRandom(1)
  const sample = () => Array.from({ length: 15 }, () => random() + random() + random())
  const held = Array.from({ length: 60 }, (_, seed) => bootstrap(sample(), seed)).filter(
    ({ low, high }) => low <= 1.5 && 1.5 <= high,
  )
  assert.ok(held.length >= 50, `${held.length} of 60`)
})

test('an interval of no values is not a number', () => {
  assert.ok(Number.isNaN(bootstrap([], 1).low))
})
