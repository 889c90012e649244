import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../git.ts'
import { type GrowthResults, readGrowth } from '../growth/results.ts'
import type { Results, ScenarioResult, SideResult } from '../results.ts'
import { readResults } from '../results-file.ts'
import { newestSoak, type Soak } from '../soak/result.ts'
import { secondHalf, slopeOf } from '../soak/slope.ts'
import { createRandom } from '../statistics.ts'
import { verdictOf } from '../summary.ts'
import { reportOf } from './page.ts'

const random = createRandom(3)

/** Nine rounds of about so many requests a second, at so many µs each. */
const side = (name: string, rate: number, cost: number): SideResult => ({
  name,
  about: 'an example',
  rounds: Array.from({ length: 9 }, () => {
    const done = Math.round(rate * (1 + 0.02 * random()))
    return { done, failed: 0, seconds: 1, load: done * 9, service: done * cost, database: done }
  }),
  latency: [{ share: 0.5, rate: rate / 2, p50: 0.4, p99: 1.25, lag: 0.1, failed: 0 }],
})

const scenario = (more: Partial<ScenarioResult> = {}): ScenarioResult => ({
  title: 'an example',
  unit: 'requests per second',
  target: { of: 'Gatehouse', against: 'the limit', atLeast: 0.5 },
  at: '2026-01-01T00:00:00.000Z',
  control: { low: 0.99, middle: 1, high: 1.01 },
  sides: [side('Gatehouse', 12_340, 51), side('the limit', 20_000, 30), side('a peer', 1_000, 900)],
  missing: { Hasura: 'no registry has it' },
  ...more,
})

const results = (example: ScenarioResult): Results => ({
  date: '2026-01-01',
  commit: '01234567',
  changed: false,
  quick: false,
  seed: 1,
  seconds: 1,
  machine: { processors: '2 × example' },
  versions: { node: '26' },
  scenarios: { example },
})

const FILE = 'bench/results/2026-01-01-01234567.json'
const pageOf = (example: ScenarioResult): string =>
  reportOf(results(example), FILE).get('docs/performance.md') ?? ''

test('the same file gives the same page and charts', () => {
  const again = JSON.parse(JSON.stringify(results(scenario({ sides: scenario().sides }))))
  assert.deepEqual(reportOf(again, FILE), reportOf(JSON.parse(JSON.stringify(again)), FILE))
  assert.deepEqual(
    [...reportOf(again, FILE).keys()],
    [
      'docs/performance.md',
      'docs/pictures/performance-rates.light.svg',
      'docs/pictures/performance-rates.dark.svg',
      'docs/pictures/performance-costs.light.svg',
      'docs/pictures/performance-costs.dark.svg',
    ],
  )
})

test('a target is met when the whole interval lies on its side', () => {
  assert.equal(verdictOf(scenario(), 1)?.isMet, true)
  const target = { of: 'Gatehouse', against: 'the limit', atLeast: 0.62 }
  assert.equal(verdictOf(scenario({ target }), 1)?.isMet, false)
  assert.equal(verdictOf(scenario({ target: { of: 'Gatehouse', atMost: 12_000 } }), 1)?.isMet, false)
  assert.match(pageOf(scenario()), /at least 0.5 of the limit \| 0.6\d* \(0.6\d*–0.6\d*\) \| met/)
})

test('on a busy machine only processor times are published, marked so', () => {
  const page = pageOf(scenario({ control: { low: 0.93, middle: 1, high: 1.02 } }))
  assert.match(page, /Processor times only/)
  assert.match(page, /not judged/)
  assert.match(page, /\| Gatehouse \| 51 \| 1 \| 9 \|/)
  assert.doesNotMatch(page, /p99 ms|12,[345]00|performance-rates/)
})

test('a void round counts neither for the rate nor for the cost, and peers that are missing are named', () => {
  const [ours, ...others] = scenario().sides
  assert.ok(ours)
  const wrong = { done: 1, failed: 3, seconds: 1, load: 1, service: 1e9, database: 1, void: 'a wrong answer' }
  const page = pageOf(scenario({ sides: [{ ...ours, rounds: [...ours.rounds.slice(1), wrong] }, ...others] }))
  assert.match(page, /\| Gatehouse \| 12,\d00 \|/)
  assert.match(page, /3 of /)
  assert.match(page, /Without Hasura: no registry has it/)
})

test('the newest soak is a section of the page, with its failures by kind', () => {
  const { date, commit, changed, machine, versions } = results(scenario())
  const memory = Array.from({ length: 301 }, (_, index) => ({ seconds: index * 2, mib: 200 + index / 300 }))
  const soak: Soak = {
    ...{ date, commit, changed, machine, versions, memory, minutes: 10, workers: 1, seed: 1 },
    ...{
      ramp: [{ connections: 8, rate: 3_000 }],
      maximum: 3_000,
      rate: 2_100,
      requests: 1_260_000,
      failed: 2,
    },
    ...{ kinds: { 'sign-in': 12_600 }, failures: { 'sign-in: 503': 2 }, slope: slopeOf(secondHalf(memory)) },
    ...{ latency: { p50: 1.5, p99: 40 }, lag: { p50: 0.1, p99: 1 } },
  }
  const page = reportOf(results(scenario()), FILE, { soak: { file: 'bench/results/x-soak.json', soak } }).get(
    'docs/performance.md',
  )
  assert.match(page ?? '', /1,260,000 requests, 2 failed: 2 × sign-in: 503/)
  assert.match(page ?? '', /slope of 0.10 ± 0.00 MiB a minute/)
})

test('the page has a table for each thing that grows, and says what is flat', () => {
  const { date, commit, changed, machine, versions } = results(scenario())
  const point = (size: number, database: number) => ({ size, service: 20, database, done: 100, failed: 1 })
  const growth: GrowthResults = {
    ...{ date, commit, changed, machine, versions },
    curves: [
      {
        title: 'a list',
        of: 'users',
        from: 10,
        compared: 'all',
        points: [point(1, 1), point(10, 10), point(100, 24)],
      },
      {
        title: 'a sign-in',
        of: 'users',
        from: 1,
        compared: 'database',
        points: [point(1, 10), point(100, 20)],
      },
      { title: 'a row', of: 'workers', from: 1, compared: 'all', points: [point(1, 10), point(4, 25)] },
    ],
  }
  const page = reportOf(results(scenario()), FILE, { growth }).get('docs/performance.md') ?? ''
  assert.match(page, /### By users\n\n\| {2}\| 1 \| 10 \| 100 \|/)
  assert.match(page, /\| a list \| 20 \+ 1 \| 20 \+ 10 \| 20 \+ 24 \| 10: 1.47 \| yes \| 3 of 303 \|/)
  assert.match(page, /\| a sign-in \| 20 \+ 10 \| {2}\| 20 \+ 20 \| 1: 2.00 \(database\) \| no \|/)
  assert.match(page, /### By workers[^#]*\| a row \| 20 \+ 10 \| 20 \+ 25 \| 1: 1.50 \| yes \|/)
})

test('the committed page and charts are those of the file that the page names', async () => {
  const committed = (name: string) => readFileSync(path.join(ROOT, name), 'utf8')
  const [, file] =
    /npm run bench -- report (bench\/results\/\S+\.json)`/.exec(committed('docs/performance.md')) ?? []
  if (file === undefined) {
    assert.ok(!existsSync(path.join(ROOT, 'bench/results')), 'results without a page')
    return
  }
  const more = { soak: await newestSoak(), growth: await readGrowth() }
  for (const [name, text] of reportOf(await readResults(path.join(ROOT, file)), file, more))
    assert.equal(committed(name), text, name)
})
