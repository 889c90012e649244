import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLanes } from './lanes.ts'
import type { ClaimedDelivery } from './store.ts'

const [EARLY, LATE, LATER] = [1_000, 2_000, 3_000].map((time) => new Date(time)) as [Date, Date, Date] // as many as numbers

const due = (...times: readonly Date[]): ClaimedDelivery[] =>
  times.map((dueAt, number) => ({
    id: String(number),
    webhookId: 'webhook',
    eventId: 'event',
    attempt: 0,
    dueAt,
    claimedUntil: LATER,
    body: null,
  }))

/** The next claim, which has no more than this answer. */
function claim(lanes: ReturnType<typeof createLanes>, ...times: readonly Date[]): Date | undefined {
  const [request] = lanes.requests()
  if (request === undefined) return undefined
  const lane = lanes.take({ ...request, free: 2 }, due(...times))
  for (const _ of times) {
    lane.begin()
    lane.end()
    lane.settle()
  }
  return request.dueFrom
}

test('a claim looks back to the earliest event that it is for, and the next one goes on where a full one has ended', () => {
  const lanes = createLanes(() => {})
  lanes.mark('webhook', LATE)
  lanes.mark('webhook', EARLY)
  lanes.mark('webhook', LATER)
  assert.deepEqual(claim(lanes, EARLY, LATE), EARLY)
  assert.deepEqual(claim(lanes, LATE), LATE)
  assert.equal(claim(lanes), undefined, 'a claim that was not full has found all')
})

test('a claim for a webhook that may have anything due looks back to the beginning', () => {
  const lanes = createLanes(() => {})
  lanes.mark('webhook', LATE)
  lanes.mark('webhook')
  assert.deepEqual(claim(lanes), new Date(0))
})
