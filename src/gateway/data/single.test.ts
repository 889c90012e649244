import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const t = await testService()
const tables = await createSecuredTables()
const key = await t.key(['gateway.*'])
const sql = async (text: string) => withClient(t.clientUrl, async (client) => (await client.query(text)).rows)

before(() => sql('create table item (id int primary key, kind text, n int)'))
const filled = () => sql(`truncate item; insert into item values (1, 'a', 0), (2, 'a', 0), (3, 'b', 0)`)

const ofKind = (kind: string) => ({
  table_name: 'item',
  conditions: [{ column: 'kind', value: kind }],
  single: true,
})

test('an update or delete of a single row writes nothing if several match', async () => {
  await filled()
  const before = await sql('select * from item order by id')
  const refused = [
    await key.post('/gateway/update', { ...ofKind('a'), set: { n: 1 } }),
    await key.post('/gateway/update', { ...ofKind('a'), set: { n: 1 }, sort_by: { field: 'id' } }),
    await key.post('/gateway/update', { ...ofKind('a'), set: { n: 1 }, head: true, count: 'exact' }),
    await key.post('/gateway/update', {
      table_name: 'item',
      set: { n: 1 },
      single: true,
      allow_unbounded: true,
    }),
    await key.post('/gateway/delete', ofKind('a')),
    await key.send('DELETE', '/gateway/delete', { body: ofKind('a') }),
  ]
  for (const { status, body } of refused) assert.deepEqual([status, body.code], [409, 'not_one_row'])
  assert.deepEqual(await sql('select * from item order by id'), before)
  const one = await key.post('/gateway/update', { ...ofKind('b'), set: { n: 1 }, columns: ['id', 'n'] })
  assert.deepEqual([one.status, one.body.data, one.body.affected_rows], [200, [{ id: 3, n: 1 }], 1])
  const none = await key.post('/gateway/delete', ofKind('c'))
  assert.deepEqual([none.status, none.body.affected_rows], [200, 0])
  // A limit is the choice of one of them.
  const chosen = await key.post('/gateway/delete', { ...ofKind('a'), limit: 1, sort_by: { field: 'id' } })
  assert.deepEqual(chosen.body.data, [{ id: 1, kind: 'a', n: 0 }])
})

test('a transaction with such a write does nothing, and names the operation', async () => {
  await filled()
  const operations = [
    { id: 'add', kind: 'insert', payload: { table_name: 'item', insert_body: { id: 4 } } },
    { id: 'drop', kind: 'delete', payload: ofKind('a') },
  ]
  const { status, body } = await key.post('/gateway/transaction', { operations })
  assert.deepEqual([status, body.code, body.data.details.operation_id], [409, 'not_one_row', 'drop'])
  assert.equal((await sql('select from item')).length, 3)
})

test('a key that may not read writes the row of a primary key alone', async () => {
  await filled()
  const writer = await t.key(['item.write'])
  const byKey = { table_name: 'item', conditions: [{ column: 'id', value: 1 }], single: true, set: { n: 5 } }
  assert.equal((await writer.post('/gateway/update', byKey)).body.affected_rows, 1)
  assert.equal((await writer.post('/gateway/update', { ...ofKind('a'), set: { n: 5 } })).status, 403)
})

test('rows that a policy hides do not count', async () => {
  const { users, adas, createTable, secured, insert, sql: query } = tables
  await createTable('note', [TEXT, USER])
  await secured('note', [{ preset: 'owner' }])
  await query(`insert into note (user_id, text) values ('${users.ada.id}', 'x'), ('${users.bea.id}', 'x')`)
  const same = { table_name: 'note', conditions: [{ column: 'text', value: 'x' }], single: true }
  const own = await adas.post('/gateway/update', { ...same, set: { text: 'x' }, columns: ['user_id'] })
  assert.deepEqual(own.body.data, [{ user_id: users.ada.id }], own.text)
  assert.equal((await insert(adas, 'note', { text: 'x' })).status, 200)
  assert.equal((await adas.post('/gateway/delete', same)).body.code, 'not_one_row')
  assert.equal((await query('select from note')).length, 3)
})
