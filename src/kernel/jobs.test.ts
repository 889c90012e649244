import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { controlDatabase, testKernel } from '#test/harness.ts'
import type { SomeHandlers } from './jobs.ts'
import { atomically } from './kernel.ts'

const controlUrl = await controlDatabase()
const kernel = await testKernel({ controlUrl })
const { jobs, db } = kernel

/** Handlers that record their data, and fail as often as they are told to. */
function worker(breaks = 0) {
  const done: string[] = []
  let left = breaks
  const handlers: SomeHandlers = {
    'send-mail': async ({ mail }) => {
      if (left-- > 0) throw new Error('the server is away')
      done.push(mail)
    },
    'answer-mail-request': async () => {},
    'log-pipeline-steps': async () => {},
  }
  return { done, handlers }
}

/** Makes every job due now. */
const hurry = () =>
  sql`update service_jobs.job set start_after = now() - interval '1 second' where state = 'retry'`.execute(db)

test('a job that is enqueued in a transaction exists after its commit', async () => {
  const { done, handlers } = worker()
  await atomically(kernel, async (kernel) => {
    await jobs.enqueue(kernel.db, 'send-mail', { mail: 'one' })
    assert.equal(await jobs.drain(handlers), 0)
  })
  assert.equal(await jobs.drain(handlers), 1)
  assert.deepEqual(done, ['one'])
  assert.equal(await jobs.drain(handlers), 0, 'once')
})

test('a job of a rolled-back transaction never runs', async () => {
  const { done, handlers } = worker()
  const work = atomically(kernel, async (kernel) => {
    await jobs.enqueue(kernel.db, 'send-mail', { mail: 'never' })
    throw new Error('no')
  })
  await assert.rejects(work)
  assert.equal(await jobs.drain(handlers), 0)
  assert.deepEqual(done, [])
})

test('a failed job is tried again later, until it succeeds', async () => {
  const { done, handlers } = worker(3)
  await jobs.enqueue(db, 'send-mail', { mail: 'stubborn' })
  for (let round = 0; round < 3; round++) {
    assert.equal(await jobs.drain(handlers), 1)
    assert.equal(await jobs.drain(handlers), 0, 'not at once')
    await hurry()
  }
  assert.deepEqual(done, [])
  assert.equal(await jobs.drain(handlers), 1)
  assert.deepEqual(done, ['stubborn'])
})

test('a failed job is not lost and does not block the next one', async () => {
  const { done, handlers } = worker(1)
  await jobs.enqueue(db, 'send-mail', { mail: 'broken' })
  await jobs.enqueue(db, 'send-mail', { mail: 'fine' })
  assert.equal(await jobs.drain(handlers), 2)
  assert.deepEqual(done, ['fine'])
  await hurry()
  await jobs.drain(handlers)
  assert.deepEqual(done, ['fine', 'broken'])
})

test('two processes share the queue, and each job runs once', async () => {
  const other = await testKernel({ controlUrl })
  const { done, handlers } = worker()
  await kernel.jobs.start(handlers, [])
  await other.jobs.start(handlers, [])
  const names = Array.from({ length: 40 }, (_, index) => `job ${index}`)
  await Promise.all(names.map((mail) => jobs.enqueue(db, 'send-mail', { mail })))
  for (let patience = 0; patience < 1_000 && done.length < names.length; patience++) await sleep(50)
  await sleep(100)
  assert.deepEqual(done.toSorted(), names.toSorted())
})

test('a job starts as soon as it is committed', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const quick = await testKernel()
  await quick.jobs.start(
    {
      'send-mail': async () => resolve(),
      'answer-mail-request': async () => {},
      'log-pipeline-steps': async () => {},
    },
    [],
  )
  const began = performance.now()
  await quick.jobs.enqueue(quick.db, 'send-mail', { mail: 'now' })
  await promise
  // The queue is polled every five seconds; a notification is faster.
  assert.ok(performance.now() - began < 4_000, `${performance.now() - began} ms`)
})
