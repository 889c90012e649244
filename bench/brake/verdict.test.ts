import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../statistics.ts'
import { judge, type Sample, verdictOf } from './verdict.ts'

/** Costs of 13 rounds about a mean, with a drift of the machine that all sides share and noise of each. */
function sample(
  costs: { ours: number; again: number; others: Record<string, number> },
  noise: number,
): Sample {
  const random = createRandom(5)
  const drift = Array.from({ length: 13 }, () => 1 + random())
  const around = (cost: number) => drift.map((factor) => cost * factor * (1 + noise * (random() - 0.5)))
  return {
    ours: around(costs.ours),
    again: around(costs.again),
    others: Object.fromEntries(Object.entries(costs.others).map(([name, cost]) => [name, around(cost)])),
  }
}

const SAME = { main: 100, reference: 100 }

test('a loss of 15 % is found under a drift of the machine by 100 %', () => {
  const judged = judge(sample({ ours: 115, again: 115, others: { main: 100, reference: 113 } }, 0.06))
  assert.ok(judged.isMeasurable)
  assert.deepEqual(judged.dearer, ['main'])
  const { low = 0, high = 9 } = judged.ratios.main ?? {}
  assert.ok(low > 1.12 && high < 1.18, `${low} to ${high}`)
})

test('the same state, and a gain, pass', () => {
  assert.deepEqual(judge(sample({ ours: 100, again: 100, others: SAME }, 0.06)).dearer, [])
  assert.deepEqual(judge(sample({ ours: 80, again: 80, others: SAME }, 0.06)).dearer, [])
})

test('two processes of one state that differ by more than 4 %, in either direction, measure nothing', () => {
  assert.ok(!judge(sample({ ours: 100, again: 106, others: SAME }, 0.01)).isMeasurable)
  assert.ok(!judge(sample({ ours: 106, again: 100, others: SAME }, 0.01)).isMeasurable)
})

test('rounds that do not agree whether it is dearer measure nothing', () => {
  const ours = [100, 130, 90, 128, 95, 131, 129, 92, 127, 128, 96]
  const judged = judge({ ours, again: ours, others: { main: ours.map(() => 100) } })
  assert.deepEqual([judged.dearer, judged.isMeasurable], [['main'], false])
})

test('rounds without a value measure nothing', () => {
  assert.ok(!judge({ ours: [], again: [], others: { main: [] } }).isMeasurable)
})

test('one measurable attempt passes and two condemn', () => {
  const attempt = (isMeasurable: boolean, ...dearer: string[]) => ({
    control: 1,
    isMeasurable,
    ratios: {},
    dearer,
  })
  const [passes, dear, noisy] = [attempt(true), attempt(true, 'main'), attempt(false, 'main')]
  assert.equal(verdictOf([passes], 3), 'passed')
  assert.equal(verdictOf([dear], 3), undefined)
  assert.equal(verdictOf([dear, passes], 3), 'passed')
  assert.equal(verdictOf([dear, dear], 3), 'dearer')
  assert.equal(verdictOf([noisy, noisy], 3), undefined)
  assert.equal(verdictOf([noisy, noisy, noisy], 3), 'not measurable')
  assert.equal(verdictOf([noisy, dear, noisy], 3), 'not measurable')
})
