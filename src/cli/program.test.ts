import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'

test('a command whose output is not read to its end ends quietly', async () => {
  const child = spawn(process.execPath, ['bin/gatehouse.mjs', 'config', 'show'])
  child.stdout.destroy()
  const [errors] = await Promise.all([text(child.stderr), once(child, 'close')])
  assert.deepEqual([child.exitCode, errors], [0, ''])
})
