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
  for (const on_delete of ['cascade', 'CASCADE'])
    assert.deepEqual(await bind(['kept.read', 'kept.write'], on_delete, '1'), [403, 'kept.delete'])
  assert.deepEqual(await bind(['kept.read', 'kept.write'], 'set null', '1'), [200, undefined])
  const removed = await key.send('DELETE', '/gateway/delete', {
    body: { table_name: 'mine', conditions: [{ eq_column: 'id', eq_value: 1 }] },
  })
  assert.equal(removed.status, 200, removed.text)
  assert.equal((await key.post('/query/count', { table_name: 'kept' })).body.count, 1)

  assert.deepEqual(await bind(['kept.*'], 'cascade'), [200, undefined])
})

test('a foreign key needs the right to read the other table, because it shows which values there are', async () => {
  const unique = { name: 'token', data_type: 'text', unique: true }
  await key.post('/management/tables', { table_name: 'secret', columns: [unique] })
  await key.post('/gateway/insert', { table_name: 'secret', insert_body: { token: 'known' } })
  const own = { table: 'own', column: 'id' }
  const guess = (name: string, references: object = { table: 'secret', column: 'token' }) => ({ name, data_type: 'text', default_expression: `'${name}'`, references }) // biome-ignore format: short
  const who = async (...rights: string[]) => t.key(['management.tables.write', 'own.*', ...rights])
  const blind = await who()
  const made = await blind.post('/management/tables', { table_name: 'own', columns: [{ ...guess('parent', own), data_type: 'bigint', default_expression: null }] }) // biome-ignore format: short
  assert.equal(made.status, 200, made.text)
  await blind.post('/gateway/insert', { table_name: 'own', insert_body: {} })
  const add = async (one: typeof blind, column: object) => {
    const operations = [{ operation: 'add_column', column }]
    const { status, body } = await one.send('PATCH', '/management/tables/own', { body: { operations } })
    return [status, body.data?.details?.required_right]
  }
  for (const name of ['known', 'unknown'])
    assert.deepEqual(await add(blind, guess(name)), [403, 'secret.read'])
  const refused = await blind.post('/management/tables', { table_name: 'other', columns: [guess('known')] })
  assert.deepEqual([refused.status, refused.body.data.details.required_right], [403, 'secret.read'])
  assert.deepEqual(await add(await who('secret.read'), guess('known')), [200, undefined])
})
