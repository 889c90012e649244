import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createGroupCommit } from './group-commit.ts'

/** Runs that end on command. */
function controlled(max: number, weigh?: (item: number) => number) {
  const runs: { items: readonly number[]; end: PromiseWithResolvers<readonly string[]> }[] = []
  const ask = createGroupCommit<number, string>(
    max,
    (items) => {
      const end = Promise.withResolvers<readonly string[]>()
      runs.push({ items, end })
      return end.promise
    },
    weigh,
  )
  const finish = async (run: number) => {
    runs[run]?.end.resolve(runs[run].items.map((item) => `did ${item}`))
    await turn()
  }
  return { runs, ask, finish, items: () => runs.map(({ items }) => items) }
}

test('a single item runs at once; items that arrive meanwhile share the next run, and each gets its own result', async () => {
  const { ask, finish, items } = controlled(10)
  const first = ask(1)
  assert.deepEqual(items(), [[1]])
  const others = [ask(2), ask(3), ask(4)]
  assert.deepEqual(items(), [[1]])
  await finish(0)
  assert.equal(await first, 'did 1')
  assert.deepEqual(items(), [[1], [2, 3, 4]])
  await finish(1)
  assert.deepEqual(await Promise.all(others), ['did 2', 'did 3', 'did 4'])
})

test('a run has at most the largest number of items', async () => {
  const { ask, finish, items } = controlled(2)
  const all = [1, 2, 3, 4].map(ask)
  for (let run = 0; run < 3; run++) {
    await finish(run)
    await all[run]
  }
  assert.deepEqual(items(), [[1], [2, 3], [4]])
})

test('with weights, a run has items up to the largest weight, or one that is heavier', async () => {
  const { ask, finish, items } = controlled(10, (item) => item)
  const all = [1, 4, 5, 2, 30, 10].map(ask)
  for (let run = 0; run < 5; run++) await finish(run)
  await Promise.all(all)
  assert.deepEqual(items(), [[1], [4, 5], [2], [30], [10]])
})

test('after a run, items are collected for as long as the pause takes', async () => {
  const runs: (readonly number[])[] = []
  const run = async (items: readonly number[]) => {
    runs.push(items)
    return items
  }
  const ask = createGroupCommit(10, run, undefined, 1)
  const first = ask(1)
  assert.deepEqual(runs, [[1]])
  await first
  assert.deepEqual(await Promise.all([ask(2), ask(3)]), [2, 3])
  assert.deepEqual(runs, [[1], [2, 3]])
})

test('a failed run fails only its own items, and the next one runs', async () => {
  const { ask, runs, finish } = controlled(10)
  const first = ask(1)
  const second = ask(2)
  runs[0]?.end.reject(new Error('broken'))
  await assert.rejects(first, /broken/)
  await finish(1)
  assert.equal(await second, 'did 2')
})
