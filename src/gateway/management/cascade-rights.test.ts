import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['management.*', 'gateway.*'])

test('rows of a table are not bound to a row of another one without the right to delete them', async () => {
  for (const table_name of ['kept', 'mine']) {
    assert.equal((await key.post('/management/tables', { table_name })).status, 200)
    await key.post('/gateway/insert', { table_name, insert_body: { id: 1 } })
  }
  const bind = async (rights: readonly string[], on_delete: string, default_expression?: string) => {
    const column = { name: `to_${on_delete.replace(' ', '_')}`, data_type: 'bigint', default_expression, references: { table: 'mine', column: 'id', on_delete } } // biome-ignore format: short
    const who = await t.key(['management.tables.write', 'mine.*', ...rights])
    const operations = [{ operation: 'add_column', column }]
    const { status, body } = await who.send('PATCH', '/management/tables/kept', { body: { operations } })
    return [status, body.data?.details?.required_right]
  }
  assert.deepEqual(await bind(['kept.read'], 'cascade', '1'), [403, 'kept.delete'])
  assert.deepEqual(await bind([], 'set null', '1'), [200, undefined])
  const removed = await key.send('DELETE', '/gateway/delete', {
    body: { table_name: 'mine', conditions: [{ eq_column: 'id', eq_value: 1 }] },
  })
  assert.equal(removed.status, 200, removed.text)
  assert.equal((await key.post('/query/count', { table_name: 'kept' })).body.count, 1)

  assert.deepEqual(await bind([], 'cascade'), [200, undefined])
})
