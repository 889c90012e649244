import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testServerUrl, withClient } from '#test/database.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const { sql, roles, admin, adas, keyWith, createTable, secure, secured, readBack, insert, fetched } =
  await createSecuredTables()

test('row-level security stays on while it keeps rows from a role of others', async () => {
  await createTable('counted', [TEXT, USER])
  await secured('counted', [{ preset: 'owner' }])
  await insert(adas, 'counted', { text: 'hidden' })
  // As the callers of another client of the same database.
  const reports = `reports_${roles.anon}`
  await withClient(testServerUrl(), (client) => client.query(`create role ${reports} nologin`))
  try {
    for (const rights of ['select', 'select (text)', 'insert, delete']) {
      await sql(`grant ${rights} on counted to ${reports}`)
      const refused = await secure('counted', { enabled: false })
      assert.deepEqual([refused.status, refused.body.code], [409, 'object_in_use'], rights)
      assert.equal(refused.body.data.details.role, reports)
      assert.equal((await readBack('counted')).enabled, true)
      await sql(`revoke ${rights} on counted from ${reports}`)
    }
    await secured('counted', [], { enabled: false })
    // Without row-level security it sees every row anyway.
    await sql(`grant select on counted to ${reports}`)
    await secured('counted', [], { enabled: false })
  } finally {
    await sql('drop table counted')
    await withClient(testServerUrl(), (client) => client.query(`drop role ${reports}`))
  }
})

test('row-level security stays on while it keeps rows from the owner of the table as well', async () => {
  await createTable('forced', [TEXT, USER])
  await insert(admin, 'forced', { text: 'hidden' })
  await secured('forced', [])
  await sql('alter table forced force row level security')
  assert.deepEqual(await sql('select text from forced'), [])
  const refused = await secure('forced', { enabled: false })
  assert.deepEqual([refused.status, refused.body.code], [409, 'object_in_use'], refused.text)
  assert.deepEqual(await sql('select text from forced'), [])
  await sql('alter table forced no force row level security')
  await secured('forced', [], { enabled: false })
})

test('a key learns nothing about values of rows that policies hide from it', async () => {
  await createTable('typed', [TEXT, USER])
  await insert(admin, 'typed', { text: 'hidden' })
  const body = { operations: [{ operation: 'alter_type', column_name: 'text', data_type: 'integer' }] }
  const bound = await keyWith(['management.tables.write', 'gateway.read', 'gateway.write'])
  const bypassing = await keyWith([
    'management.tables.write',
    'gateway.read',
    'gateway.write',
    'gateway.bypass_row_level_security',
  ])
  for (const [who, status, isTold] of [
    [bound, 403, false],
    [bypassing, 422, true],
  ] as const) {
    const answer = await who.send('PATCH', '/management/tables/typed', { body })
    assert.deepEqual([answer.status, answer.text.includes('hidden')], [status, isTold], answer.text)
  }
})

test('a serial column that is added later does not keep callers from inserting', async () => {
  await createTable('entry', [TEXT, USER])
  await secured('entry', [{ preset: 'owner' }])
  const column = { name: 'nr', data_type: 'bigserial' }
  const body = { operations: [{ operation: 'add_column', column }] }
  assert.equal((await admin.send('PATCH', '/management/tables/entry', { body })).status, 200)
  const made = await insert(adas, 'entry', { text: 'a' })
  assert.deepEqual([made.status, made.body.data?.[0].nr], [200, 1], made.text)
  const grants = await sql(`select has_sequence_privilege('${roles.anon}', 'entry_nr_seq', 'usage') as may`)
  assert.deepEqual(grants, [{ may: false }])
})

test('a cascade drops no restrictive policy of a table that stays', async () => {
  await createTable('ban', [TEXT])
  await createTable('post', [TEXT, { name: 'hidden', data_type: 'boolean' }])
  await secured('post', [{ preset: 'signed_in_read' }])
  await sql(`create view banned as select text from ban;
    create policy strict on post as restrictive using (hidden is null and text <> all (select text from banned))`)
  await insert(admin, 'post', [{ text: 'shown' }, { text: 'hidden', hidden: true }])
  const texts = async () => (await fetched(adas, 'post', { columns: 'id,text' })).length ?? 0
  await sql(`grant select on banned to ${roles.member}`)
  assert.equal(await texts(), 1)
  for (const dropped of ['/management/tables/ban', '/management/tables/post/columns/hidden']) {
    const { status, body } = await admin.send('DELETE', dropped, { body: { cascade: true } })
    assert.deepEqual(
      [status, body.code, body.data.details.dependents[0].name],
      [409, 'object_in_use', 'strict'],
    )
    assert.equal(await texts(), 1)
  }
  await sql('drop policy strict on post')
  assert.equal(
    (await admin.send('DELETE', '/management/tables/ban', { body: { cascade: true } })).status,
    200,
  )
})
