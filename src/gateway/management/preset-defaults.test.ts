import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const { sql, users, admin, adas, createTable, secure, secured, readBack, insert } =
  await createSecuredTables()
const { ada } = users

const OWNER = [{ preset: 'owner' }]
const fallbackOf = async (table: string, column = 'user_id') => {
  const [found] = await sql(`select pg_get_expr(adbin, adrelid) as text from pg_attrdef
    join pg_attribute a on attrelid = adrelid and adnum = attnum where attname = '${column}' and adrelid = '${table}'::regclass`)
  return found?.text
}
const edit = async (table: string, ...operations: object[]) => {
  const answer = await admin.send('PATCH', `/management/tables/${table}`, { body: { operations } })
  assert.equal(answer.status, 200, answer.text)
}

/** A table whose column `user_id` has a default of the operator's. */
async function created(table: string, fallback: string): Promise<void> {
  await createTable(table, [TEXT, USER, { name: 'team', data_type: 'text' }])
  await sql(`alter table ${table} alter user_id set default ${fallback}`)
}

const NOBODY = '00000000-0000-0000-0000-000000000000'

test('a default that a preset replaces is kept and told, and comes back when the preset goes', async () => {
  const kept = `'${NOBODY}'::uuid`
  await created('kept', kept)
  const replaced = [{ column: 'user_id', default_expression: kept }]
  const set = await secured('kept', OWNER)
  assert.deepEqual(set.replaced_defaults, replaced)
  assert.deepEqual((await readBack('kept')).replaced_defaults, replaced)
  assert.equal((await insert(adas, 'kept', { text: 'a' })).body.data[0].user_id, ada.id)

  // Also when the preset is set again, moves to another one, or its column has a new name.
  assert.deepEqual((await secured('kept', OWNER)).replaced_defaults, replaced)
  const moved = await secured('kept', [{ preset: 'organization', column: 'user_id' }])
  assert.deepEqual(moved.replaced_defaults, replaced)
  await edit('kept', { operation: 'rename_column', column_name: 'user_id', new_name: 'Holder' })
  assert.deepEqual((await readBack('kept')).replaced_defaults, [{ ...replaced[0], column: 'Holder' }])

  const gone = await secured('kept', [{ preset: 'organization', column: 'team' }])
  assert.deepEqual([gone.replaced_defaults, await fallbackOf('kept', 'Holder')], [[], kept])
  assert.deepEqual((await secured('kept', [])).replaced_defaults, [])
  assert.deepEqual([await fallbackOf('kept', 'Holder'), await fallbackOf('kept', 'team')], [kept, undefined])
  assert.equal((await insert(admin, 'kept', { text: 'b' })).body.data[0].Holder, NOBODY)
})

test('a default of the operator that reads the claims comes back, too', async () => {
  await sql(
    `create function claimed() returns uuid language sql stable as $$ select (current_setting('request.claims')::json ->> 'user_id')::uuid $$`,
  )
  for (const [table, fallback] of [
    ['by_function', 'claimed()'],
    ['by_claim', `(current_setting('request.claims')::json ->> 'user_id')::uuid`],
  ] as const) {
    await created(table, fallback)
    const before = await fallbackOf(table)
    assert.equal((await secured(table, OWNER)).replaced_defaults.length, 1)
    assert.equal((await secure(table, { enabled: false })).status, 200)
    assert.equal(await fallbackOf(table), before)
  }
})

test('a default that was set after the preset stays when the preset goes', async () => {
  await created('later', `'${NOBODY}'::uuid`)
  await secured('later', OWNER)
  await edit('later', {
    operation: 'set_default',
    column_name: 'user_id',
    default_expression: 'gen_random_uuid()',
  })
  assert.deepEqual((await readBack('later')).replaced_defaults, [])
  await secured('later', [])
  assert.equal(await fallbackOf('later'), 'gen_random_uuid()')

  await secured('later', OWNER)
  await edit('later', { operation: 'drop_default', column_name: 'user_id' })
  await secured('later', [])
  assert.equal(await fallbackOf('later'), undefined)

  // It is the one that is kept by the preset that is set again.
  await secured('later', OWNER)
  await edit('later', {
    operation: 'set_default',
    column_name: 'user_id',
    default_expression: 'gen_random_uuid()',
  })
  const again = await secured('later', OWNER)
  assert.deepEqual(again.replaced_defaults, [{ column: 'user_id', default_expression: 'gen_random_uuid()' }])
  assert.match(await fallbackOf('later'), /request\.claims/)
})

test('a kept default that cannot come back is told, and another default lets the preset go', async () => {
  await sql(
    `create schema "o'f"; create function "o'f".chosen() returns uuid language sql as $$ select gen_random_uuid() $$`,
  )
  await created('broken', `"o'f".chosen()`)
  const set = await secured('broken', OWNER)
  assert.deepEqual(set.replaced_defaults, [{ column: 'user_id', default_expression: `"o'f".chosen()` }])
  await sql(`drop function "o'f".chosen()`)
  const before = await readBack('broken')
  const refused = await secure('broken', { policies: [] })
  assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_policy'], refused.text)
  assert.match(refused.body.error, /"o'f"\.chosen\(\).*cannot come back.*set_default or drop_default/)
  assert.deepEqual(await readBack('broken'), before)
  await edit('broken', { operation: 'drop_default', column_name: 'user_id' })
  await secured('broken', [])
})

test('a comment of a policy that was changed runs no other statement', async () => {
  await created('forged', `'${NOBODY}'::uuid`)
  await secured('forged', OWNER)
  const [{ comment }] = (await sql(
    `select obj_description(oid, 'pg_policy') as comment from pg_policy where polrelid = 'forged'::regclass`,
  )) as [{ comment: string }]
  for (const text of [
    'null, drop column text',
    'null; drop table forged',
    '(select',
    'null, add column x int',
  ]) {
    const forged = comment.replace(/('0{8}.*?)(?=")/, text)
    assert.notEqual(forged, comment)
    await sql(`comment on policy gatehouse_owner on forged is '${forged.replaceAll("'", "''")}'`)
    const refused = await secure('forged', { policies: [] })
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_policy'], refused.text)
  }
  assert.equal((await insert(adas, 'forged', { text: 'a' })).status, 200)
})
