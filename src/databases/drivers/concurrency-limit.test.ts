import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConcurrencyLimit } from '#databases/drivers/concurrency-limit.ts'

test('up to the limit callers enter at once, the others in order, as soon as one leaves', async () => {
  const limit = createConcurrencyLimit({ places: 2, waiting: 1_000, patience: 10_000 })
  const entered: string[] = []
  const enter = async (name: string) => {
    const release = await limit.acquire()
    entered.push(name)
    return release
  }
  const [first, second] = [await enter('first'), await enter('second')]
  const others = ['third', 'fourth'].map(enter)
  assert.deepEqual(limit.stats(), { active: 2, waiting: 2 })
  first()
  const third = await others[0]
  assert.deepEqual([entered, limit.stats()], [['first', 'second', 'third'], { active: 2, waiting: 1 }])
  // Leaving twice frees one place.
  first()
  assert.deepEqual(limit.stats(), { active: 2, waiting: 1 })
  second()
  const fourth = await others[1]
  third?.()
  fourth?.()
  assert.deepEqual(limit.stats(), { active: 0, waiting: 0 })
})

test('a caller who waits too long gets client_busy and does not take a place', async () => {
  const limit = createConcurrencyLimit({ places: 1, waiting: 1_000, patience: 20 })
  const release = await limit.acquire()
  const busy = { code: 'client_busy', status: 503 }
  await assert.rejects(limit.acquire(), busy)
  assert.deepEqual(limit.stats(), { active: 1, waiting: 0 })
  release()
  ;(await limit.acquire())()
  assert.deepEqual(limit.stats(), { active: 0, waiting: 0 })
})

test('above the number of waiters a caller is refused at once', async () => {
  const limit = createConcurrencyLimit({ places: 1, waiting: 100, patience: 10_000 })
  const release = await limit.acquire()
  const waiting = Array.from({ length: 100 }, () => limit.acquire())
  await assert.rejects(limit.acquire(), { code: 'client_busy', status: 503 })
  release()
  for (const next of waiting) (await next)()
  assert.deepEqual(limit.stats(), { active: 0, waiting: 0 })
})
