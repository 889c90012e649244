import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { childrenOf } from '#kernel/db/embedded/processes.ts'
import { eventually } from './embedded.ts'
import { exitOf, hasExited, isAlive, noteStartedPrograms } from './processes.ts'

test('programs that a file leaves are killed with their children; those that have ended are not told', async () => {
  const kill = noteStartedPrograms()
  await once(spawn('true'), 'exit')
  await once(spawn('/there/is/no/such/program'), 'error')
  const left = spawn('sh', ['-c', 'sleep 1234; true'])
  const pid = left.pid ?? 0
  await eventually(async () => (await childrenOf(pid)).length === 1)
  const [child = 0] = await childrenOf(pid)
  assert.deepEqual(await kill(), ['sh -c sleep 1234; true'])
  await exitOf(left)
  assert.ok(hasExited(left))
  await eventually(() => !isAlive(child))
  assert.deepEqual(await kill(), [])
})
