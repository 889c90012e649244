import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const t = await testService()
const writer = await t.key(['gateway.read', 'gateway.write'])
const owner = await t.key(['gateway.query'])

const insert = (insert_body: object) =>
  writer.send('PUT', '/gateway/insert', {
    body: { table_name: 'ticket', insert_body },
    headers: { 'x-service-insert-window': '1500' },
  })

test('an insert after a change of the table shares no batch with one from before it', async () => {
  const create = 'create table ticket (id int primary key, code int, at timestamp)'
  await withClient(t.clientUrl, (client) => client.query(create))
  const before = insert({ id: 1, code: 7, at: '2026-01-01T00:00:00' })
  await sleep(200)
  const change = 'alter table ticket alter code type text, alter at type timestamptz'
  const changed = await owner.post('/gateway/query', { query: change })
  assert.equal(changed.status, 200, changed.text)
  const after = insert({ id: 2, code: '007', at: '2026-01-01T00:00:00+05:00' })
  const [first, second] = await Promise.all([before, after])
  assert.deepEqual([first.status, second.status], [200, 200], second.text)
  assert.deepEqual(second.body.data, [{ id: 2, code: '007', at: '2025-12-31T19:00:00Z' }])
})
