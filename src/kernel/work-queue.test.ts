import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Failure } from './errors.ts'
import { createWorkQueue } from './work-queue.ts'

/** Work that ends on command. */
function controlled() {
  const done = Promise.withResolvers<string>()
  const begun: string[] = []
  return {
    begun,
    finish: done.resolve,
    break: done.reject,
    work: (name: string) => () => {
      begun.push(name)
      return done.promise
    },
  }
}

test('a bounded number runs at once, the others in the order of their arrival', async () => {
  const queue = createWorkQueue(2, 10, () => {})
  const begun: number[] = []
  let running = 0
  let most = 0
  const all = Array.from({ length: 10 }, (_, index) =>
    queue(async () => {
      begun.push(index)
      most = Math.max(most, ++running)
      await turn()
      running--
      return index
    }),
  )
  assert.equal(queue.depth(), 8)
  assert.deepEqual(await Promise.all(all), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  assert.deepEqual([begun, most, queue.depth()], [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 2, 0])
})

test('beyond the queue the answer is 503 with Retry-After, counted once, and the work does not start', async () => {
  let refusals = 0
  const queue = createWorkQueue(1, 2, () => refusals++)
  const { work, begun, finish } = controlled()
  const inside = ['first', 'second', 'third'].map((name) => queue(work(name)))
  for (const name of ['fourth', 'fifth']) {
    await assert.rejects(queue(work(name)), (error) => {
      assert.ok(error instanceof Failure)
      assert.deepEqual([error.status, error.headers?.['retry-after']], [503, '1'])
      return true
    })
  }
  assert.deepEqual([refusals, begun], [2, ['first']])
  finish('done')
  assert.deepEqual(await Promise.all(inside), ['done', 'done', 'done'])
  assert.deepEqual(begun, ['first', 'second', 'third'])
})

test('failed work frees its place, whether it throws or rejects', async () => {
  const queue = createWorkQueue(1, 5, () => {})
  const broken = new Error('broken')
  const results = await Promise.allSettled([
    queue(() => Promise.reject(broken)),
    queue(() => {
      throw broken
    }),
    queue(async () => 'fine'),
  ])
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason)),
    [broken, broken, 'fine'],
  )
  assert.equal(queue.depth(), 0)
  assert.equal(await queue(async () => 'and again'), 'and again')
})

test('a queue of length 0 refuses work that would have to wait', async () => {
  const queue = createWorkQueue(1, 0, () => {})
  const { work, finish } = controlled()
  const first = queue(work('first'))
  await assert.rejects(queue(work('second')), Failure)
  finish('done')
  await first
  assert.equal(await queue(async () => 'free again'), 'free again')
})
