import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBoundedQueue } from './bounded-queue.ts'

const refusal = () => new Error('refused')

test('callers are served in the order in which they came', async () => {
  const queue = createBoundedQueue<string, string>({ max: 3, refusal })
  const waiting = ['first', 'second', 'third'].map((name) => queue.wait(name))
  assert.equal(queue.length(), 3)
  for (let next = queue.next(); next; next = queue.next()) next.give(`the turn of ${next.ticket}`)
  assert.deepEqual(await Promise.all(waiting), [
    'the turn of first',
    'the turn of second',
    'the turn of third',
  ])
  assert.equal(queue.length(), 0)
})

test('a caller whose weight does not fit is refused at once, and takes no room', async () => {
  const queue = createBoundedQueue({ max: 5, refusal })
  const heavy = queue.wait(undefined, 4)
  await assert.rejects(queue.wait(undefined, 2), /refused/)
  assert.throws(() => queue.expectRoom(2), /refused/)
  queue.expectRoom(1)
  queue.next()?.give()
  await heavy
  queue.expectRoom(5)
})

test('a caller who has waited for too long is refused, and the next one comes first', async () => {
  const queue = createBoundedQueue<string>({ max: 2, patience: 20, refusal })
  await assert.rejects(queue.wait(undefined), /refused/)
  const next = queue.wait(undefined)
  queue.next()?.give('turn')
  assert.equal(await next, 'turn')
})

test('callers can be taken out of the queue, and the others keep their order', async () => {
  const queue = createBoundedQueue<string, number>({ max: 4, refusal })
  const waiting = [1, 2, 3, 4].map((ticket) => queue.wait(ticket))
  queue.reject(
    () => new Error('left'),
    (ticket) => ticket % 2 === 0,
  )
  for (let next = queue.next(); next; next = queue.next()) next.give(`turn ${next.ticket}`)
  const outcomes = await Promise.allSettled(waiting)
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message)),
    ['turn 1', 'left', 'turn 3', 'left'],
  )
})
