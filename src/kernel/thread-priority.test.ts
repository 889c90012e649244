import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
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
