import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyedSemaphore } from './keyed-semaphore.ts'

const full = new Error('full')
const semaphore = (patience = 20) => createKeyedSemaphore(4, { max: 4, patience, refusal: () => full })

test('one key has half of the semaphore; others have the rest, in order', async () => {
  const { acquire } = semaphore()
  const release = [await acquire('a'), await acquire('a'), await acquire('b'), await acquire('c')]
  for (const key of ['a', 'b', 'd']) await assert.rejects(acquire(key), full, key)
  release[2]?.()
  ;(await acquire('d'))()
  for (const releaseOne of release) releaseOne()
  for (const key of ['a', 'a', 'b', 'b']) await acquire(key)
})

test('of eight parts, one key has an eighth of the semaphore', async () => {
  const { acquire } = createKeyedSemaphore(16, { max: 16, patience: 20, refusal: () => full, parts: 8 })
  for (const key of ['a', 'b', 'c']) for (let count = 0; count < 2; count++) await acquire(key)
  await assert.rejects(acquire('a'), full)
})

test('those of one key who wait beyond its half are refused at once', async () => {
  const { acquire } = semaphore(60_000)
  const [first, second] = [await acquire('a'), await acquire('a')]
  const waiting = [acquire('a'), acquire('a')]
  await assert.rejects(acquire('a'), full)
  const others = [await acquire('b'), await acquire('b')]
  first()
  second()
  for (const release of [...(await Promise.all(waiting)), ...others]) release()
  await acquire('a')
})

test('of two keys the first has a quarter of the semaphore, and the second half', async () => {
  const { acquire } = createKeyedSemaphore(8, { max: 8, patience: 20, refusal: () => full })
  const slow = [await acquire('a', 'slow'), await acquire('a', 'slow')]
  await assert.rejects(acquire('a', 'fast'), full)
  slow.push(await acquire('b', 'slow'), await acquire('b', 'slow'))
  await assert.rejects(acquire('c', 'slow'), full)
  for (const key of ['c', 'c', 'd', 'd']) await acquire(key, 'fast')
  for (const release of [...slow, ...slow]) release()
  for (const key of ['a', 'a', 'b', 'b']) await acquire(key, 'slow')
  await assert.rejects(acquire('e', 'other'), full)
})
