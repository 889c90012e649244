import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { mock, test } from 'node:test'
import { removeFolder } from '#test/temporary-folder.ts'
import { boundLog, openLog } from './log-file.ts'

test('a log beyond its bound is truncated, its last megabyte is kept, and no later line is lost', async (context) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-test-log-'))
  context.after(() => removeFolder(folder))
  const file = path.join(folder, 'server.log')
  mock.timers.enable({ apis: ['setInterval'] })
  context.after(() => mock.timers.reset())

  const log = await openLog(folder)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  // Like the server: a child with the file as its output, which goes on writing.
  const child = spawn(
    '/bin/sh',
    ['-c', 'while read -r lines; do yes "a line of the server" | head -n "$lines"; done'],
    {
      stdio: ['pipe', log.fd, 'inherit'],
    },
  )
  const write = (lines: number) => child.stdin?.write(`${lines}\n`)
  const until = async (isSo: (size: number) => boolean) => {
    while (!isSo((await stat(file)).size)) await new Promise((resolve) => setImmediate(resolve))
  }
  const LINE = 'a line of the server\n'.length
  boundLog(folder, log, ended)

  write(1_000)
  await until((size) => size === 1_000 * LINE)
  mock.timers.tick(10_000)
  write(500_000)
  await until((size) => size === 501_000 * LINE)
  mock.timers.tick(10_000)
  await until((size) => size === 0)
  assert.equal((await stat(`${file}.1`)).size, 2 ** 20)
  write(2)
  await until((size) => size === 2 * LINE)
  assert.equal(await readFile(file, 'utf8'), 'a line of the server\n'.repeat(2), 'no hole at its beginning')
  child.stdin?.end()
  await once(child, 'exit')
  end()
  while (log.fd !== -1) await new Promise((resolve) => setImmediate(resolve))
})
