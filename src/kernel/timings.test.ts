import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTimings, mergeTimings, type TimingsReport } from './timings.ts'

const SINCE = new Date('2026-05-01T10:00:00Z')

/** As another process receives it. */
const sent = (report: TimingsReport): TimingsReport => JSON.parse(JSON.stringify(report))

/** The time of the rank that the percentile names, of all times. */
const exact = (times: readonly number[], share: number): number =>
  times.toSorted((one, other) => one - other)[Math.ceil(times.length * share) - 1] ?? 0

test('percentiles of several processes are those of all times together, to a fifth more', () => {
  const time = fc.double({ min: 0.2, max: 100_000, noNaN: true })
  const processes = fc.array(fc.array(time, { maxLength: 60 }), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(processes, (all) => {
      const reports = all.map((times) => {
        const timings = createTimings(SINCE)
        for (const one of times) timings.observe('key', one)
        return sent(timings.report())
      })
      const times = all.flat()
      const [found] = mergeTimings(reports).timings
      if (times.length === 0) return assert.equal(found, undefined)
      assert.ok(found)
      assert.deepEqual([found.count, found.max], [times.length, Math.max(...times)])
      for (const [share, value] of [
        [0.5, found.p50],
        [0.95, found.p95],
      ] as const) {
        const right = exact(times, share)
        assert.ok(value >= right * 0.999 && value <= right * 1.2, `${share}: ${value} for ${right}`)
      }
    }),
    { numRuns: 200 },
  )
})

test('times beyond the buckets are the longest time', () => {
  const timings = createTimings(SINCE)
  for (const one of [0, 0.05, 3_600_000]) timings.observe('key', one)
  const [found] = mergeTimings([timings.report()]).timings
  assert.deepEqual([found?.p50, found?.p95, found?.max], [0.1, 3_600_000, 3_600_000])
})

test('with too many keys those with the least time are counted together, and nothing is lost', () => {
  const timings = createTimings(SINCE, 10)
  for (let count = 0; count < 3; count++) timings.observe('slow', 5_000)
  for (let index = 0; index < 1_000; index++) timings.observe(`junk ${index}`, 1)
  const report = timings.report()
  assert.ok(report.keys.length <= 10, `${report.keys.length}`)
  const { timings: found, others } = mergeTimings([sent(report)])
  assert.equal(found.find(({ key }) => key === 'slow')?.count, 3)
  const sum = (name: 'count' | 'total') => found.reduce((sum, one) => sum + one[name], others[name])
  assert.deepEqual([sum('count'), sum('total')], [1_003, 16_000])
})

test('the oldest process says since when', () => {
  const later = new Date(SINCE.getTime() + 1_000)
  const { since } = mergeTimings([createTimings(later).report(), createTimings(SINCE).report()])
  assert.deepEqual(since, SINCE)
})
