import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { parentOf, processorTime, residentMemory, treeOf } from './processor.ts'

/** Processor time, not time: a busy machine gives less of it. */
const BUSY = 'while (process.cpuUsage().user < 300_000);'

test('the time of a child counts while it runs and after it has ended', async (t) => {
  if (process.platform !== 'linux') return t.skip('the times come from /proc')
  const shell = spawn('sh', ['-c', `"${process.execPath}" -e "${BUSY}"; echo ended; read line`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => shell.kill())
  const root = shell.pid ?? 0
  assert.equal(parentOf(root), process.pid)
  await once(shell.stdout, 'data')
  const ended = processorTime(root)
  assert.ok(ended > 290_000 && ended < 3_000_000, `${ended} µs`)
  assert.deepEqual(treeOf(root), [root])
  assert.ok(residentMemory(root) > 0.1)
  shell.stdin.end('\n')
  await once(shell, 'exit')
  assert.equal(processorTime(root), 0)
})
