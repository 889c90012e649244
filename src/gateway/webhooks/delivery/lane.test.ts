import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Lane } from './lane.ts'
import { createTally } from './places.ts'
import type { ClaimedDelivery } from './store.ts'

const none = () => ({ lanes: 0, held: 0 })

function newLane() {
  const tally = createTally()
  return { tally, lane: new Lane('webhook', tally, () => {}) }
}

const claims = (count: number): ClaimedDelivery[] =>
  Array.from({ length: count }, (_, number) => ({
    id: String(number),
    webhookId: 'webhook',
    eventId: 'event',
    attempt: 0,
    dueAt: new Date(0),
    claimedUntil: new Date(0),
    body: null,
  }))

const NOTHING = { responseBody: null, error: null, waitAsked: 0 }
const answer = (responseStatus: number | null, durationMs: number) => ({
  ...NOTHING,
  isSuccess: responseStatus === 204,
  responseStatus,
  durationMs,
})

/** Begins one request, and ends it with this answer. */
function attempt(lane: Lane, result: ReturnType<typeof answer>): readonly ClaimedDelivery[] {
  assert.notEqual(lane.begin(), undefined)
  lane.end()
  const released = lane.learn(result)
  lane.settle()
  return released
}

test('a lane begins ten requests at once, oldest first, and the next when one has ended', () => {
  const { lane } = newLane()
  lane.take(claims(12))
  const begun = Array.from({ length: 11 }, () => lane.begin()?.id)
  assert.deepEqual(begun, ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', undefined])
  lane.end()
  assert.equal(lane.begin()?.id, '10')
})

test('only a lane whose last answer was quick and good claims ahead', () => {
  const { lane, tally } = newLane()
  assert.equal(lane.room, 10, 'before the first answer')
  lane.take(claims(10))
  assert.deepEqual(attempt(lane, answer(204, 5)), [])
  assert.equal(lane.room, 91)
  lane.take(claims(91))
  assert.equal(lane.room, 0, 'until half of it is used up')
  assert.equal(attempt(lane, answer(204, 800)).length, 99, 'the claims ahead go back')
  assert.deepEqual([lane.pace, lane.room], ['unhurried', 10])
  assert.deepEqual(tally, { quick: none(), unhurried: { lanes: 1, held: 0 }, silent: none() })
})

test('a request that takes too long makes its lane silent, which keeps the requests that it has', () => {
  const { lane, tally } = newLane()
  lane.take(claims(10))
  for (let request = 0; request < 4; request++) lane.begin()
  assert.equal(lane.suspect().length, 6)
  assert.deepEqual(tally, { quick: none(), unhurried: none(), silent: { lanes: 1, held: 4 } })
  lane.end()
  assert.deepEqual(lane.learn(answer(204, 5)), [])
  assert.equal(lane.pace, 'quick')
  assert.equal(tally.quick.held, 4, 'the outcome is not written')
  lane.settle()
  assert.equal(tally.quick.held, 3)
})

test('ten failures in a row pause a lane, and a success ends the row', () => {
  const { lane } = newLane()
  lane.take(claims(20))
  for (let failure = 0; failure < 9; failure++) attempt(lane, answer(500, 5))
  attempt(lane, answer(204, 5))
  assert.equal(lane.room, 90)
  for (let failure = 0; failure < 10; failure++) attempt(lane, answer(null, 5))
  assert.equal(lane.room, 0)
  assert.equal(lane.isIdle, false, 'it is looked at when the pause ends')
  lane.resume()
  assert.equal(lane.room, 10)
})

test('a pause ends when the last failure says, and the lane rings then', async () => {
  const rings: number[] = []
  const lane: Lane = new Lane('webhook', createTally(), () => void rings.push(lane.room))
  const fail = () => {
    lane.take(claims(1))
    attempt(lane, answer(500, 5))
  }
  for (let count = 0; count < 10; count++) fail()
  await sleep(400)
  fail()
  const paused = performance.now()
  while (rings.length === 0 && performance.now() - paused < 5_000) await sleep(20)
  assert.deepEqual(rings, [10])
  lane.leave()
})
