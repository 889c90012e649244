import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['management.*', 'gateway.*'])

test('a new name of a table gives its key no rows that it could not reach before', async () => {
  const made = await key.post('/management/tables', { table_name: 'payroll' })
  assert.equal(made.status, 200, made.text)
  const rename = async (rights: readonly string[], table: string, new_name: string) => {
    const who = await t.key(['management.tables.write', ...rights])
    const operations = [{ operation: 'rename_table', new_name }]
    const { status, body } = await who.send('PATCH', `/management/tables/${table}`, { body: { operations } })
    return [status, body.data?.details?.required_rights ?? body.data?.table_name]
  }
  assert.deepEqual(await rename(['notes.read'], 'payroll', 'notes'), [403, ['payroll.read', 'payroll.write']])
  assert.deepEqual(await rename(['notes.*', 'payroll.read'], 'payroll', 'notes'), [403, ['payroll.write', 'payroll.delete']]) // biome-ignore format: short
  assert.equal((await key.post('/gateway/fetch', { table_name: 'payroll' })).status, 200)
  assert.deepEqual(await rename(['notes.read', 'payroll.read', 'payroll.write'], 'payroll', 'wages'), [
    200,
    'wages',
  ])
  assert.deepEqual(await rename(['notes.read', 'wages.read', 'wages.write'], 'wages', 'notes'), [
    200,
    'notes',
  ])
})

test('names that a public route shows are not given to data that the key may not read', async () => {
  const columns = ['title', 'secret', 'open'].map((name) => ({ name, data_type: 'text' }))
  for (const table_name of ['page', 'draft'])
    assert.equal((await key.post('/management/tables', { table_name, columns })).status, 200)
  const change = async (rights: readonly string[], edit: object, table = 'page') => {
    const who = await t.key(['management.tables.write', 'management.columns.drop', ...rights])
    const edits = await who.send('PATCH', `/management/tables/${table}`, { body: { operations: [edit] } })
    return [edits.status, edits.body.data?.details?.required_right]
  }
  const rename = { operation: 'rename_column', column_name: 'secret', new_name: 'other' }
  const whole = ['page.read', 'page.write']
  assert.deepEqual(await change(whole, rename), [200, undefined])
  const route = { route_key: 'pages', client_name: 'default', table_name: 'page', allowed_ops: ['fetch'], columns: ['title'] } // biome-ignore format: short
  assert.equal((await t.admin.post('/admin/public-routes', route)).status, 201)
  for (const edit of [{ ...rename, column_name: 'other', new_name: 'secret' }, { operation: 'rename_table', new_name: 'pages' }]) // biome-ignore format: short
    assert.deepEqual(await change([], edit), [403, 'page.read'])
  const blind = await t.key(['management.columns.drop'])
  const dropped = await blind.send('DELETE', '/management/tables/page/columns/open', { body: {} })
  assert.deepEqual([dropped.status, dropped.body.data.details.required_right], [403, 'page.read'])
  assert.deepEqual(await change(whole, { ...rename, column_name: 'other', new_name: 'secret' }), [200, undefined]) // biome-ignore format: short
  const add = (name: string) => ({ operation: 'add_column', column: { name, data_type: 'text' } })
  assert.deepEqual(await change([], add('more'), 'draft'), [200, undefined])
  const report = {
    route_key: 'report',
    client_name: 'default',
    allowed_ops: ['query'],
    query: 'select title from Draft',
  }
  assert.equal((await t.admin.post('/admin/public-routes', report)).status, 201)
  assert.deepEqual(await change([], add('again'), 'draft'), [403, 'draft.read'])
})
