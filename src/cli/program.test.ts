import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { program } from './program.ts'

test('a command whose output is not read to its end ends quietly', async () => {
  const child = spawn(process.execPath, ['bin/gatehouse.mjs', 'config', 'show'])
  child.stdout.destroy()
  const [errors] = await Promise.all([text(child.stderr), once(child, 'close')])
  assert.deepEqual([child.exitCode, errors], [0, ''])
})

test('the help of each command shows the options that all commands take', async () => {
  const gatehouse = await program([])
  const commands = gatehouse.commands.flatMap((command) => [command, ...command.commands])
  assert.ok(commands.length > 30)
  for (const command of commands)
    assert.match(command.helpInformation(), /--data-dir <folder>/, command.name())
})
