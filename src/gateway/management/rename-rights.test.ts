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
  assert.deepEqual(await rename(['notes.read'], 'payroll', 'notes'), [403, ['payroll.read']])
  assert.deepEqual(await rename(['notes.*', 'payroll.read'], 'payroll', 'notes'), [403, ['payroll.write', 'payroll.delete']]) // biome-ignore format: short
  assert.equal((await key.post('/gateway/fetch', { table_name: 'payroll' })).status, 200)
  assert.deepEqual(await rename(['notes.read'], 'payroll', 'wages'), [200, 'wages'])
  assert.deepEqual(await rename(['notes.read', 'wages.read'], 'wages', 'notes'), [200, 'notes'])
})
