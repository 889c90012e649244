import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { runHere } from '#test/journeys/command.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'

const service = await testService()

test('openapi prints the routes of the service, and needs neither a database nor an installation', async (t) => {
  const folder = await createTemporaryFolder()
  t.after(() => removeFolder(folder))
  let connections = 0
  const database = createServer((socket) => {
    connections++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  t.after(() => database.close())
  await once(database, 'listening')
  const { port } = database.address() as AddressInfo // a TCP server's
  const env = { DATABASE_URL: `postgres://gatehouse:hidden@127.0.0.1:${port}/gatehouse` }

  const table = await runHere(folder, ['openapi', '--access', '--json'], env)
  assert.deepEqual(JSON.parse(table.stdout), JSON.parse(JSON.stringify(service.service.book.entries())))
  const document = JSON.parse((await runHere(folder, ['openapi'], env)).stdout)
  const { body } = await service.anon.get('/openapi.json')
  assert.deepEqual(document.paths, body.paths)
  assert.deepEqual(document.components, body.components)
  assert.deepEqual([connections, await readdir(folder)], [0, []])
})
