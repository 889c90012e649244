import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConcurrencyLimit } from '#databases/drivers/concurrency-limit.ts'

test('up to the limit callers enter at once, the others in order, as soon as one leaves', async () => {
  const places = createConcurrencyLimit({ places: 2, waiting: 1_000, patience: 10_000 })
  const entered: string[] = []
  const enter = async (name: string) => {
    const leave = await places.enter()
    entered.push(name)
    return leave
  }
  const [first, second] = [await enter('first'), await enter('second')]
  const others = ['third', 'fourth'].map(enter)
  assert.deepEqual(places.stats(), { inside: 2, waiting: 2 })
  first()
  const third = await others[0]
  assert.deepEqual([entered, places.stats()], [['first', 'second', 'third'], { inside: 2, waiting: 1 }])
  // Leaving twice frees one place.
  first()
  assert.deepEqual(places.stats(), { inside: 2, waiting: 1 })
  second()
  const fourth = await others[1]
  third?.()
  fourth?.()
  assert.deepEqual(places.stats(), { inside: 0, waiting: 0 })
})

test('a caller who waits too long gets client_busy and does not take a place', async () => {
  const places = createConcurrencyLimit({ places: 1, waiting: 1_000, patience: 20 })
  const leave = await places.enter()
  const busy = { code: 'client_busy', status: 503 }
  await assert.rejects(places.enter(), busy)
  assert.deepEqual(places.stats(), { inside: 1, waiting: 0 })
  leave()
  ;(await places.enter())()
  assert.deepEqual(places.stats(), { inside: 0, waiting: 0 })
})

test('above the number of waiters a caller is refused at once', async () => {
  const places = createConcurrencyLimit({ places: 1, waiting: 100, patience: 10_000 })
  const leave = await places.enter()
  const waiting = Array.from({ length: 100 }, () => places.enter())
  await assert.rejects(places.enter(), { code: 'client_busy', status: 503 })
  leave()
  for (const next of waiting) (await next)()
  assert.deepEqual(places.stats(), { inside: 0, waiting: 0 })
})
