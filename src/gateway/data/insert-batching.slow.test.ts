import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['gateway.read', 'gateway.write'])
const sql = (text: string) => withClient(t.clientUrl, async (client) => (await client.query(text)).rows)
const insert = (window: string, body: object) =>
  key.send('PUT', '/gateway/insert', {
    body: { table_name: 'item', ...body },
    headers: { 'x-service-insert-window': window },
  })
await sql('create table item (id int primary key, name text)')

test('waiting inserts share a memory limit, and a stopping service runs the remaining ones', async () => {
  let answered = 0
  // Each insert has its own window, because each returns a different column name.
  const waiting = Array.from({ length: 8 }, (_, index) =>
    insert('60000', {
      insert_body: { id: 9_000 + index, name: 'x'.repeat(15_000_000) },
      columns: [`as_${index}:id`],
    }).then(({ status }) => {
      answered++
      return status
    }),
  )
  // The eighth insert exceeds the limit, which ends the largest window.
  while (answered < 4) await sleep(20)
  assert.ok(answered < 8, 'inserts within the limit do not wait any more')
  const began = performance.now()
  await t.stop()
  assert.deepEqual(
    await Promise.all(waiting),
    waiting.map(() => 200),
  )
  assert.ok(performance.now() - began < 20_000)
  assert.equal((await sql('select from item where id between 9000 and 9007')).length, 8)
})
