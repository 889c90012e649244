import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer } from '#test/harness.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const { t, sql, users, admin, adas, keyWith, createTable, secured, secure, insert, fetched } =
  await createSecuredTables()

const BYPASS = 'gateway.bypass_row_level_security'
const MANAGEMENT = ['management.tables.write', 'management.columns.drop']
const edit = (who: typeof admin, table: string, ...operations: readonly object[]) =>
  who.send('PATCH', `/management/tables/${table}`, { body: { operations } })
const refusal = ({ status, body }: Answer) => [status, body.data?.details?.required_rights]

test('a key that policies bind gives no user the rows of others by a new column', async () => {
  await createTable('letters', [TEXT, USER])
  await secured('letters', [{ preset: 'owner' }])
  assert.equal((await insert(admin, 'letters', { text: 'of Bea', user_id: users.bea.id })).status, 200)
  const key = await keyWith([...MANAGEMENT, 'letters.*'])
  const mine = { name: 'mine', data_type: 'uuid', default_expression: `'${users.ada.id}'` }
  for (const column of [mine, { ...mine, nullable: false }, { name: 'number', data_type: 'serial' }]) {
    const answer = await edit(key, 'letters', { operation: 'add_column', column })
    assert.deepEqual(refusal(answer), [403, [BYPASS]], answer.text)
  }
  const policies = [{ preset: 'owner', column: 'mine' }]
  assert.equal((await secure('letters', { policies }, key)).status, 400)
  assert.deepEqual(await fetched(adas, 'letters'), [])
  const { default_expression: expression, ...empty } = mine
  assert.equal((await edit(key, 'letters', { operation: 'add_column', column: empty })).status, 200)
  // Later rows of others would have it.
  const later = { operation: 'set_default', column_name: 'mine', default_expression: expression }
  for (const operation of [later, { ...later, operation: 'drop_default' }])
    assert.deepEqual(refusal(await edit(key, 'letters', operation)), [403, [BYPASS]])
  assert.equal((await secure('letters', { policies }, key)).status, 200)
  assert.deepEqual(await fetched(adas, 'letters'), [])
  const free = await keyWith([...MANAGEMENT, 'letters.*', BYPASS])
  assert.equal((await edit(free, 'letters', { operation: 'add_column', column: { ...mine, name: 'other' } })).status, 200) // biome-ignore format: short
})

test('names that a route of the owner asks for are not given to rows that policies hide from the key', async () => {
  const open = { name: 'open', data_type: 'boolean' }
  await createTable('papers', [TEXT, USER, open, { name: 'checked', data_type: 'boolean' }])
  await createTable('drafts', [TEXT, USER, open])
  for (const table of ['papers', 'drafts']) {
    await secured(table, [{ preset: 'owner' }])
    const row = { text: 'hidden', open: null, ...(table === 'papers' && { checked: true }) }
    assert.equal((await insert(admin, table, row)).status, 200)
  }
  const key = await keyWith([...MANAGEMENT, 'papers.*', 'drafts.*', 'free.*'])
  const rename = { operation: 'rename_column', column_name: 'checked', new_name: 'seen' }
  assert.equal((await edit(key, 'papers', rename)).status, 200, 'nothing names it yet')

  const conditions = [{ column: 'open', operator: 'eq', value: true }]
  const route = { route_key: 'papers', client_name: 'app', table_name: 'papers', allowed_ops: ['fetch'], requires_key: false, run_as: 'owner', conditions } // biome-ignore format: short
  const client = { headers: { 'x-service-client': 'app' } }
  assert.equal((await t.admin.send('POST', '/admin/public-routes', { ...client, body: route })).status, 201)
  const shown = async () => (await t.anon.post('/public/papers/fetch', {})).body.data
  const changes = [
    { operation: 'rename_column', column_name: 'seen', new_name: 'open' },
    { operation: 'rename_table', new_name: 'free' },
    { operation: 'add_column', column: { name: 'more', data_type: 'boolean' } },
  ]
  for (const operation of changes)
    assert.deepEqual(refusal(await edit(key, 'papers', operation)), [403, [BYPASS]], operation.operation)
  const dropped = await key.send('DELETE', '/management/tables/papers/columns/open', { body: {} })
  assert.deepEqual(refusal(dropped), [403, [BYPASS]])
  const moved = { operation: 'rename_table', new_name: 'papers' }
  assert.deepEqual(refusal(await edit(key, 'drafts', moved)), [403, [BYPASS]])
  assert.deepEqual(await shown(), [])

  // A function finds data by its name, too; a policy follows its column.
  const again = { operation: 'rename_column', column_name: 'open', new_name: 'opened' }
  assert.equal((await edit(key, 'drafts', again)).status, 200)
  await sql(`create function count_drafts() returns bigint language plpgsql security definer
    as 'begin return (select count(*) from drafts where opened); end'`)
  assert.deepEqual(refusal(await edit(key, 'drafts', { ...again, column_name: 'opened', new_name: 'open' })), [403, [BYPASS]]) // biome-ignore format: short
  const free = await keyWith([...MANAGEMENT, 'papers.*', BYPASS])
  assert.equal((await edit(free, 'papers', { ...rename, column_name: 'seen', new_name: 'checked' })).status, 200) // biome-ignore format: short
})
