import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { createTemporaryHome, spawnCommand, startProgram } from './program.ts'

test('a watcher goes on when the service, and its database with it, has started again', async () => {
  await using home = new AsyncDisposableStack()
  const { folder, key, remove } = await createTemporaryHome()
  home.defer(remove)
  const first = await startProgram(folder)
  const watcher = spawnCommand(folder, ['types', '--out', 'types.ts', '--watch'], {})
  home.defer(async () => void (watcher.exitCode ?? watcher.kill('SIGKILL')))
  const has = (table: string) =>
    eventually(async () =>
      (await readFile(path.join(folder, 'types.ts'), 'utf8').catch(() => '')).includes(table),
    )
  const create = async ({ url }: { readonly url: string }, table_name: string) => {
    const headers = { apikey: await key(), 'x-service-client': 'default', 'content-type': 'application/json' }
    const body = JSON.stringify({ table_name, columns: [{ name: 'title', data_type: 'text' }] })
    assert.equal((await fetch(`${url}/management/tables`, { method: 'POST', headers, body })).status, 200)
  }
  await create(first, 'before_it')
  await has('before_it')
  assert.equal(await first.end('SIGTERM'), 0)
  const second = await startProgram(folder)
  home.defer(async () => void (await second.end('SIGTERM')))
  await create(second, 'after_it')
  await has('after_it')
  watcher.kill('SIGINT')
  await once(watcher, 'exit')
  assert.deepEqual([watcher.exitCode, watcher.signalCode], [0, null])
})
