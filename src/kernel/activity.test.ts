import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ActivityReport, createActivity, KEPT_MINUTES, lastHour } from './activity.ts'

const START = Date.parse('2026-05-01T10:00:30Z')
const MINUTE = 60_000

function turned() {
  let now = START
  return { now: () => new Date(now), advance: (milliseconds: number) => (now += milliseconds) }
}

const sent = (report: ActivityReport): ActivityReport => JSON.parse(JSON.stringify(report))

test('requests are counted by surface and class of status, acts by name, in their minute', () => {
  const clock = turned()
  const activity = createActivity(clock.now)
  for (const status of [200, 204, 304, 401, 404, 503]) activity.request('auth', status)
  for (const status of [101, 200, 999]) activity.request('gateway', status)
  clock.advance(MINUTE)
  activity.count('sign_ins')
  activity.count('jobs_failed')
  const { minutes, total } = lastHour([sent(activity.report())], clock.now())
  assert.equal(minutes.length, KEPT_MINUTES)
  const [before, last] = minutes.slice(-2)
  assert.equal(last?.at.toISOString(), '2026-05-01T10:01:00.000Z')
  assert.deepEqual(
    [before?.counts['auth 2xx'], before?.counts['auth 4xx'], before?.counts.sign_ins],
    [2, 2, 0],
  )
  assert.deepEqual([last?.counts['auth 2xx'], last?.counts.sign_ins, last?.counts.jobs_failed], [0, 1, 1])
  assert.deepEqual([total['auth 3xx'], total['auth 5xx'], total['gateway 2xx'], total.jobs], [1, 1, 1, 0])
})

test('a minute is forgotten after an hour, also when nothing has happened since', () => {
  const clock = turned()
  const activity = createActivity(clock.now)
  activity.count('jobs')
  const total = () => lastHour([activity.report()], clock.now()).total.jobs
  clock.advance(59 * MINUTE)
  assert.equal(total(), 1)
  clock.advance(MINUTE)
  assert.equal(total(), 0)
  activity.count('jobs')
  assert.equal(total(), 1, 'in the same place of the ring')
})

test('processes are counted together, also one whose clock is ahead', () => {
  const clock = turned()
  const [one, other] = [createActivity(clock.now), createActivity(clock.now)]
  one.count('deliveries')
  other.count('deliveries')
  const ahead = createActivity(() => new Date(clock.now().getTime() + 2 * MINUTE))
  ahead.count('deliveries')
  const { total } = lastHour(
    [one, other, ahead].map((each) => each.report()),
    clock.now(),
  )
  assert.equal(total.deliveries, 2)
})
