import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { eventually } from '#test/embedded.ts'
import { testService } from '#test/harness.ts'
import { readPaced } from '#test/paced-reader.ts'

const { t, clients, onShop, drain, find, queued, done, backUp, restore, cities, holding } =
  await backupService({ lock_timeout: 5_000 })
/** As another process of the same installation. */
const elsewhere = await testService({ controlUrl: t.controlUrl, config: { clients } })
const key = await t.key(['*'], { client_name: 'shop' })
const headers = { ...key.headers, 'x-service-client': 'shop' }
const insert = (id: number) =>
  key.post('/gateway/insert', { table_name: 'city', insert_body: { id, name: 'new' } }, { headers })

test(
  'a restore ends the streams of its client in every process, and then begins',
  NEEDS_PROGRAMS,
  async () => {
    await onShop(`create view big as select city.id, repeat('x', 500000) as text from city limit 80`)
    const backup = await done(await backUp())
    const call = { headers, body: { table_name: 'big' } }
    const streams = await Promise.all(
      [t, elsewhere].map(({ url }) => readPaced(`${url}/gateway/fetch`, call)),
    )
    const restored = await done(await restore(backup.id))
    assert.deepEqual([restored.status, restored.error_message], ['completed', null])
    for (const stream of streams) {
      stream.hurry()
      assert.equal(await stream.end, 'cut')
    }
    assert.equal((await insert(5_001)).status, 200)
    await onShop('delete from city where id > 5000')
  },
)

test(
  'a restore that waits for sessions beside the service fails, names them, and frees the client',
  NEEDS_PROGRAMS,
  async () => {
    const before = await cities()
    const backup = await done(await backUp())
    const id = queued(await restore(backup.id))
    let running: Promise<number> | undefined
    await holding('access share', async () => {
      running = drain()
      await eventually(async () => (await find(id)).status === 'failed')
      assert.equal((await insert(5_001)).status, 200)
    })
    await running
    assert.match(
      (await find(id)).error_message,
      /^The restore waited for 5 seconds for locks of other sessions on the database \(unnamed, process \d+\)\. .*backups\.lock_timeout\.$/,
    )
    await onShop('delete from city where id > 5000')
    assert.deepEqual(await cities(), before)
  },
)
