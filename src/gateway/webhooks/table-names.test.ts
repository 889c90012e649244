import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'
import { FOR_CLIENT } from '#test/webhooks.ts'

const watcher = { operator: ['webhooks'], gateway: { default: ['notes.read'] } }
const t = await testService({ config: { auth: { admin: { roles: { watcher } } } } })
const WEBHOOK = { route_key: 'gateway_insert', url: 'https://example.com/hook' }
/** Names of tables as a body spells them. */
const [QUOTED, DOTTED] = ['"""notes"""', '"no.tes"']
await withClient(t.clientUrl, (client) =>
  client.query('create table """notes""" (id int); create table "no.tes" (id int)'),
)

test('the right to a table is none to one that has the same name in quotes, as a part of its name', async () => {
  const me = byBearer(t, await operatorOf(t, 'watcher'))
  const own = await me.post('/admin/webhooks', { ...WEBHOOK, table_name: '"notes"' })
  assert.equal(own.status, 201, own.text)
  for (const table_name of [QUOTED, DOTTED]) {
    const answers = [
      await me.post('/admin/webhooks', { ...WEBHOOK, table_name }),
      await me.send('PATCH', `/admin/webhooks/${own.body.data.id}`, { body: { table_name } }),
    ]
    for (const { status, body, text } of answers)
      assert.deepEqual([status, body?.code], [403, 'insufficient_rights'], `${table_name}: ${text}`)
  }
})

test('a webhook of a table with dots or quotes in its name gets its events', async () => {
  const key = await t.key(['*'])
  for (const table_name of [QUOTED, DOTTED]) {
    const made = await t.admin.post('/admin/webhooks', { ...WEBHOOK, table_name }, FOR_CLIENT)
    assert.equal(made.status, 201, `${table_name}: ${made.text}`)
    const inserted = await key.send('PUT', '/gateway/insert', {
      body: { table_name, insert_body: { id: 1 } },
    })
    assert.equal(inserted.status, 200, inserted.text)
    const { total } = (await t.admin.get(`/admin/webhooks/${made.body.data.id}/deliveries`, FOR_CLIENT)).body
      .data
    assert.equal(total, 1, table_name)
  }
})
