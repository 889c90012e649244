import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { runHere } from '#test/journeys/command.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { program } from './program.ts'

test('a command whose output is not read to its end ends quietly', async () => {
  const child = spawn(process.execPath, ['bin/gatehouse.mjs', 'config', 'show'])
  child.stdout.destroy()
  const [errors] = await Promise.all([text(child.stderr), once(child, 'close')])
  assert.deepEqual([child.exitCode, errors], [0, ''])
})

/** The lines that each start of Node in the program prints: its process id, the number of malloc's arenas, and options. */
async function startsOf(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const shows =
    'data:text/javascript,console.log("started", process.pid, process.env.MALLOC_ARENA_MAX, process.env.NODE_OPTIONS)'
  const given = ['--import', shows, '--disable-sigusr1', 'bin/gatehouse.mjs', ...args]
  const child = spawn(process.execPath, given, { env })
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  return {
    pid: child.pid,
    code: child.exitCode,
    starts: output.split('\n').filter((line) => line.startsWith('started')),
  }
}

test('a service on Linux has one arena of malloc and a small young generation, in the process that was started; a command and an operator who has chosen stay as they are', {
  skip: process.platform !== 'linux',
}, async () => {
  const served = await startsOf(['serve', '--help'])
  const { pid } = served
  assert.deepEqual(served, {
    pid,
    code: 0,
    starts: [`started ${pid} undefined undefined`, `started ${pid} 1 --max-semi-space-size=16`],
  })
  const wrong = await startsOf(['serve', '--port', 'x'])
  assert.deepEqual([wrong.code, wrong.starts.length], [2, 2])
  const chosen = await startsOf(['serve', '--help'], { MALLOC_ARENA_MAX: '8' })
  assert.deepEqual(chosen.starts, [`started ${chosen.pid} 8 undefined`])
  assert.equal((await startsOf(['--version'])).starts.length, 1)
})

test('a packed install says in one sentence how to run it', async (t) => {
  const folder = await createTemporaryFolder()
  t.after(() => removeFolder(folder))
  const packed = path.join(folder, 'node_modules/gatehouse')
  for (const name of ['bin/gatehouse.mjs', 'src/main.ts', 'package.json'])
    await cp(name, path.join(packed, name), { recursive: true })
  const child = spawn(process.execPath, [path.join(packed, 'bin/gatehouse.mjs'), '--version'])
  const [errors] = await Promise.all([text(child.stderr), once(child, 'close')])
  assert.equal(child.exitCode, 1)
  assert.match(errors, /^Gatehouse does not run as an installed package yet, .*`npm start` there; .*\.\n$/)
})

test('the help of each command shows the options that all commands take', async () => {
  const gatehouse = await program([])
  const commands = gatehouse.commands.flatMap((command) => [command, ...command.commands])
  assert.ok(commands.length > 30)
  for (const command of commands)
    assert.match(command.helpInformation(), /--data-dir <folder>/, command.name())
})

test('a wrong value is wrong usage: exit code 2, with the reason in one line', async () => {
  for (const [line, reason] of [
    ['serve --port abc', /a port from 0 to 65535/],
    ['serve --port 65536', /a port/],
    ['serve --port=-1', /a port/],
    ['users list --limit 0', /whole number/],
    ['users create --name Ada --email nobody', /nobody is not an email address/],
    ['users create --name Ada\u001b --email ada@example.com', /--name must be/],
    ['users ban ada@example.com --expires tomorrow', /a day or a time/],
    ['orgs list --limit ten', /whole number/],
    ['orgs members acme --limit 1.5', /whole number/],
    ['keys create shop --rights managment', /Unknown rights: managment/],
    ['keys create shop --rights management.read', /add --client/],
    ['keys create shop --rights users.read --expires soon', /a day or a time/],
    ['keys rotate shop --grace 10m', /seconds/],
    ['webhooks deliveries --status lost', /Allowed choices/],
    ['webhooks deliveries --limit x', /whole number/],
    ['webhooks replay x --since yesterday', /a day or a time/],
    ['pipelines run', /name a pipeline/],
    ['backup now', /too many arguments/],
    ['login api.example.com', /not the address of a service/],
    ['login https://ada@api.example.com', /not the address of a service/],
    ['login http://api.example.com', /over https only/],
    ['whoami ftp://localhost', /not the address of a service/],
  ] as const) {
    const { code, stdout, stderr } = await runHere(tmpdir(), line.split(' '))
    assert.deepEqual([code, stdout], [2, ''], `${line}: ${stderr}`)
    assert.match(stderr, reason, line)
    assert.match(stderr, /^[^\n]+\n$/, line)
  }
})
