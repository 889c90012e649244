import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorkerThread, ThreadStopped } from './worker-thread.ts'

const module = new URL(
  `data:text/javascript,${encodeURIComponent(`
  import { parentPort, threadId } from 'node:worker_threads'
  parentPort.on('message', (job) => {
    if (job === 'loop') for (;;);
    if (job === 'throw') throw new Error('broken')
    if (job === 'exit') process.exit(0)
    if (job === 'grow') for (const all = [];;) all.push(new Array(100_000).fill(all.length))
    parentPort.postMessage([job, threadId])
  })
  parentPort.postMessage('ready')
`)}`,
)
const refusal = () => new Error('busy')

test('a job that takes too long, fails or takes too much memory ends its thread, and the next one gets another', async () => {
  const thread = createWorkerThread({ module, deadline: 2_000, memory: 32, max: 10, refusal })
  const ids = new Set<unknown>()
  for (const job of ['loop', 'throw', 'exit', 'grow']) {
    const [before, stopped, after] = await Promise.allSettled([
      thread.run('one'),
      thread.run(job),
      thread.run('two'),
    ])
    assert.ok(before.status === 'fulfilled' && after.status === 'fulfilled', job)
    assert.ok(stopped.status === 'rejected' && stopped.reason instanceof ThreadStopped, job)
    const [one, first] = before.value as [string, number] // as the thread posts it
    const [two, second] = after.value as [string, number]
    assert.deepEqual([one, two], ['one', 'two'])
    assert.notEqual(first, second)
    ids.add(second)
  }
  assert.equal(ids.size, 4)
  await thread.close()
})

test('jobs beyond the room of the queue are refused', async () => {
  const thread = createWorkerThread({ module, deadline: 60_000, memory: 32, max: 2, refusal })
  const jobs = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((job) => thread.run(job)))
  assert.deepEqual(jobs.map(({ status }) => status), ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected']) // biome-ignore format: short
  await thread.close()
})

test('a thread whose module cannot be loaded fails its job', async () => {
  const absent = new URL('data:text/javascript,import "node:absent"')
  const thread = createWorkerThread({ module: absent, deadline: 1_000, memory: 32, max: 2, refusal })
  for (const job of ['a', 'b']) await assert.rejects(thread.run(job), ThreadStopped)
  await thread.close()
})
