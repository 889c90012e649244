import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { LOW_PRIORITY } from './thread-priority.ts'

/** proc(5): field 19, the 17th after the name. */
const priorityOf = (file: string): number =>
  Number(readFileSync(file, 'utf8').split(') ').at(-1)?.split(' ')[16])

test('a thread lowers its own priority, and not that of the process', {
  skip: process.platform !== 'linux' && 'only Linux has priorities of threads',
}, async () => {
  const before = priorityOf('/proc/self/stat')
  const module = JSON.stringify(new URL('./thread-priority.ts', import.meta.url).href)
  const worker = new Worker(
    `import { readlinkSync } from 'node:fs'
     import { parentPort } from 'node:worker_threads'
     import { lowerThreadPriority } from ${module}
     lowerThreadPriority()
     parentPort.postMessage(readlinkSync('/proc/thread-self'))
     setInterval(() => {}, 1_000)`,
    { eval: true },
  )
  const thread = await new Promise((resolve) => worker.once('message', resolve))
  const own = priorityOf(`/proc/${thread}/stat`)
  await worker.terminate()
  assert.deepEqual([own, priorityOf('/proc/self/stat')], [LOW_PRIORITY, before])
})

test('the threads that hash have a low priority, and all others keep theirs', {
  skip: process.platform !== 'linux' && 'only Linux has priorities of threads',
}, async () => {
  const module = JSON.stringify(new URL('./thread-priority.ts', import.meta.url).href)
  const script = `import { readdirSync, readFileSync } from 'node:fs'
    import { lowerPoolPriority } from ${module}
    await lowerPoolPriority()
    const task = (id, file) => readFileSync('/proc/self/task/' + id + '/' + file, 'utf8')
    const threads = readdirSync('/proc/self/task').map((id) => [task(id, 'comm').trim(), task(id, 'stat').split(') ').at(-1).split(' ')[16]])
    console.log(JSON.stringify(threads))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env: { UV_THREADPOOL_SIZE: '3' },
  })
  const threads = JSON.parse(stdout) as readonly (readonly [string, string])[]
  const prioritiesOf = (isInPool: boolean) =>
    threads.filter(([name]) => (name === 'libuv-worker') === isInPool).map(([, nice]) => Number(nice))
  assert.deepEqual(prioritiesOf(true), Array(3).fill(LOW_PRIORITY))
  const own = priorityOf('/proc/self/stat')
  assert.deepEqual(prioritiesOf(false), Array(threads.length - 3).fill(own))
})
