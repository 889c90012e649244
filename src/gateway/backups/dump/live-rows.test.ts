import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { feedOn, told } from '#test/changes.ts'

const { t, shopUrl, onShop, done, backUp, restore } = await backupService()

test(
  'a restored table is live again, with another epoch, and so is one that became live since the backup',
  NEEDS_PROGRAMS,
  async () => {
    const key = await t.key(['management.*', 'gateway.*'], { client_name: 'shop' })
    const enable = async (table: string) => {
      const headers = { 'x-service-client': 'shop' }
      const answer = await key.send('PUT', `/management/tables/${table}/realtime`, {
        body: { enabled: true },
        headers,
      })
      assert.equal(answer.status, 200, answer.text)
    }
    const { feed, read, names, driver } = feedOn(shopUrl)
    await enable('city')
    const before = await feed.position()
    await onShop(`update city set name = 'noted' where id = 1`)
    const job = await done(await backUp())
    assert.equal(job.status, 'completed', job.error_message)
    await onShop('create table later (id int primary key)')
    await enable('later')
    await onShop('insert into later values (1)')
    const restored = await done(await restore(job.id))
    assert.equal(restored.status, 'completed', restored.error_message)
    assert.deepEqual((await onShop('select from service_changes')).rowCount, 0)
    assert.deepEqual(await feed.read(before), { lost: 'epoch' })
    const start = await feed.position()
    assert.deepEqual((await names()).toSorted(), ['city', 'later'])
    await onShop(`update city set name = 'again' where id = 2; insert into later values (2)`)
    assert.deepEqual(told(await read(start)).toSorted(), ['city update {"id":2}', 'later insert {"id":2}'])
    assert.deepEqual(await feed.read(before), { lost: 'epoch' })
    await driver.close()
  },
)

test(
  'a backup of before a table was live ends its positions when it is restored',
  NEEDS_PROGRAMS,
  async () => {
    const { feed, names, live, ended, driver } = feedOn(shopUrl)
    await ended('city', 'later')
    await onShop('drop table later')
    const job = await done(await backUp())
    await live('city')
    const before = await feed.position()
    const restored = await done(await restore(job.id))
    assert.equal(restored.status, 'completed', restored.error_message)
    assert.deepEqual(await names(), [])
    assert.ok('lost' in (await feed.read(before)))
    await driver.close()
  },
)
