import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testServerUrl, withClient } from '#test/database.ts'
import { actor } from '#test/harness.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const {
  t,
  sql,
  database,
  roles,
  admin,
  adas,
  stranger,
  keyWith,
  createTable,
  secure,
  secured,
  readBack,
  insert,
  fetched,
} = await createSecuredTables()

test('policies are set as a whole and read back as they were set, and rights follow them', async () => {
  await createTable('note', [TEXT, USER, { name: 'open', data_type: 'boolean' }])
  const own = [
    { preset: 'owner', column: 'user_id' },
    { name: 'open_notes', command: 'select', roles: [roles.anon, roles.member], using: 'open -- for all' },
    {
      name: 'short_notes',
      command: 'insert',
      roles: [roles.anon],
      check: 'length(text) < 5 and user_id is null',
    },
  ]
  const set = await secured('note', own)
  const rights = (data: { grants: { role: string; privileges: string[] }[] }) =>
    Object.fromEntries(
      data.grants.map(({ role, privileges }) => [role === roles.anon ? 'anon' : 'member', privileges]),
    )
  assert.deepEqual(set.policies, own)
  assert.deepEqual(await readBack('note'), set)
  assert.deepEqual(rights(set), {
    anon: ['select', 'insert'],
    member: ['select', 'insert', 'update', 'delete'],
  })
  await insert(adas, 'note', [{ text: 'a', open: true }, { text: 'hidden' }])
  assert.equal((await insert(stranger, 'note', { text: 'long text', open: true })).status, 403)
  assert.equal((await insert(stranger, 'note', { text: 'anon', open: true })).status, 200)
  assert.deepEqual((await fetched(stranger, 'note')).length, 2)
  assert.deepEqual((await fetched(adas, 'note')).length, 3)

  // Sessions whose statements are prepared see the change at once.
  await secured('note', [{ preset: 'owner' }])
  assert.deepEqual(
    [await fetched(stranger, 'note'), (await fetched(adas, 'note')).length],
    ['permission_denied', 2],
  )
  const fallback = () =>
    sql(
      `select pg_get_expr(adbin, adrelid) as text from pg_attrdef join pg_attribute a on attrelid = adrelid and adnum = attnum where attname = 'user_id' and adrelid = 'note'::regclass`,
    )
  assert.match((await fallback())[0]?.text, /request\.claims/)
  const off = await secured('note', [], { enabled: false })
  assert.deepEqual([off.enabled, off.policies, rights(off)], [false, [], { anon: [], member: [] }])
  assert.deepEqual(
    [await fetched(adas, 'note'), (await fetched(admin, 'note')).length],
    ['permission_denied', 3],
  )
  assert.deepEqual(await fallback(), [])
  assert.deepEqual(await sql(`select from pg_policy where polrelid = 'note'::regclass`), [])
  assert.equal(
    (await sql(`select has_sequence_privilege('${roles.member}', 'note_id_seq', 'usage') as may`))[0]?.may,
    false,
  )
  const refused = await secure('note', { enabled: false, policies: [{ preset: 'owner' }] })
  assert.equal(refused.body.code, 'invalid_policy')

  const logged = await actor(t.url, { ...t.admin.headers, 'x-service-client': 'logging' }).post(
    '/gateway/fetch',
    {
      table_name: 'database_audit_log',
      conditions: [
        { eq_column: 'operation', eq_value: 'row_level_security' },
        { eq_column: 'object_name', eq_value: 'note' },
      ],
    },
  )
  assert.deepEqual(
    [...new Set(logged.body.data.map(({ status }: { status: string }) => status))],
    ['succeeded'],
  )
  assert.match(logged.body.data[0].statement, /create policy "gatehouse_owner"/)
})

test('policies of others are shown and left alone, and replaced on request', async () => {
  await createTable('shared', [TEXT, USER])
  await sql(`alter table shared enable row level security; create policy theirs on shared for select to public using (text = 'all');
    grant select, delete on shared to ${roles.anon}; grant all on shared to ${roles.member}`)
  await insert(admin, 'shared', [{ text: 'all' }, { text: 'x' }])
  const set = await secured('shared', [{ preset: 'owner' }])
  assert.deepEqual(set.other_policies, [
    {
      name: 'theirs',
      command: 'select',
      permissive: true,
      roles: ['public'],
      using: `(text = 'all'::text)`,
      check: null,
    },
  ])
  assert.deepEqual(set.grants.map(({ privileges }: { privileges: string[] }) => privileges).toSorted(), [
    ['select'],
    ['select', 'insert', 'update', 'delete'],
  ])
  assert.equal((await fetched(stranger, 'shared')).length, 1)
  const taken = await secure('shared', {
    policies: [{ name: 'theirs', command: 'delete', roles: [roles.member], using: 'true' }],
  })
  assert.deepEqual([taken.status, taken.body.code], [409, 'object_exists'])
  // A policy that was changed in the database is shown as it is.
  await sql(`alter policy gatehouse_owner on shared using (true)`)
  const changed = await readBack('shared')
  assert.deepEqual([changed.policies[0].name, changed.policies[0].using], ['gatehouse_owner', 'true'])
  const replaced = await secured('shared', [{ preset: 'owner' }], { replace: true })
  assert.deepEqual(
    [replaced.other_policies, replaced.policies],
    [[], [{ preset: 'owner', column: 'user_id' }]],
  )
  assert.equal(await fetched(stranger, 'shared'), 'permission_denied')
  // Without row-level security, a right through PUBLIC would show every row.
  await sql('grant select on shared to public')
  const open = await secure('shared', { enabled: false })
  assert.deepEqual(
    [open.status, open.body.code, (await readBack('shared')).enabled],
    [409, 'object_in_use', true],
  )
})

test('policies that the table cannot have are refused, and nothing is changed', async () => {
  const short = { name: 'short', data_type: 'varchar(35)' }
  await createTable('strict', [TEXT, USER, short, { name: 'size', data_type: 'integer' }])
  await createTable('other', [TEXT, { name: 'secret', data_type: 'text' }])
  await secured('strict', [{ preset: 'owner' }])
  await sql(`create function touch(strict) returns boolean language plpgsql as $$ begin delete from other; return true; end $$;
    create function peek(strict) returns boolean language sql stable as 'select true'; create view seen as select * from other`)
  const before = await readBack('strict')
  const own = (more: object) => ({
    name: 'p',
    command: 'select',
    roles: [roles.member],
    using: 'true',
    ...more,
  })
  for (const policy of [
    {},
    { preset: 'owner', name: 'x' },
    { preset: 'owner', using: 'true' },
    { preset: 'public_read', column: 'text' },
    { preset: 'owner', column: 'missing' },
    { preset: 'owner', column: 'size' },
    { preset: 'owner', column: 'short' },
    { preset: 'owner', column: 'user_id"; drop table other; --' },
    own({ roles: ['postgres'] }),
    own({ roles: ['public'] }),
    own({ roles: [roles.anon, 'missing'] }),
    own({ roles: [`${roles.anon}"; drop table other; --`] }),
    own({ name: 'a"; drop table other; --' }),
    own({ name: 'gatehouse_x' }),
    own({ column: 'text' }),
    own({ using: undefined }),
    own({ check: 'true' }),
    own({ command: 'insert' }),
    own({ command: 'insert', using: undefined }),
    own({ command: 'delete', check: 'true' }),
    own({ command: 'update', using: undefined, check: 'true' }),
    own({ using: 'missing' }),
    own({ using: 'other.secret is null' }),
    own({ using: 'text' }),
    own({ using: 'size = text' }),
    own({ using: 'strict.touch' }),
    own({ using: 'strict.peek' }),
    own({ using: 'true); drop table other; --' }),
    own({ using: 'exists (select from pg_authid)' }),
    own({ using: `exists (select from other where touch(strict))` }),
    own({ using: 'exists (select from strict)' }),
    own({ using: "set_config('role', 'none', false) is null" }),
    own({ using: "'x'::uuid = user_id" }),
    own({ using: "(text ->> 'a') = 'x'" }),
    own({ command: 'all', check: "nextval('other_id_seq') > 0" }),
  ]) {
    // biome-ignore format: a table
    const answer = await secure('strict', { policies: [policy] })
    assert.equal(answer.status, 400, `${JSON.stringify(policy)}: ${answer.text}`)
    assert.deepEqual(await readBack('strict'), before)
  }
  for (const policies of [[own({}), own({ command: 'delete' })], [{ preset: 'owner' }, { preset: 'owner', column: 'user_id' }], Array(51).fill(own({}))])
    assert.equal((await secure('strict', { policies })).status, 400) // biome-ignore format: short
  assert.equal(
    (
      await secure('strict', {
        policies: [own({ using: 'exists (select from seen s where s.text = strict.text)' })],
      })
    ).status,
    200,
  )
})

test('policies that read each other are refused, and those set at the same time replace each other', async () => {
  await createTable('left_one', [TEXT, USER])
  await createTable('right_one', [TEXT, USER])
  const reads = (table: string) => [
    {
      name: 'reads',
      command: 'select',
      roles: [roles.member],
      using: `exists (select from ${table} o where o.user_id is null)`,
    },
  ]
  await secured('left_one', reads('right_one'))
  const endless = await secure('right_one', { policies: reads('left_one') })
  assert.deepEqual([endless.status, endless.body.code], [400, 'invalid_policy'], endless.text)
  assert.equal((await readBack('right_one')).enabled, false)

  const sets = [
    [{ preset: 'public_read' }],
    [{ preset: 'owner', column: 'user_id' }],
    [{ preset: 'signed_in_read' }],
    [],
  ]
  const answers = await Promise.all(
    sets.flatMap((set) => [set, set]).map((policies) => secure('right_one', { policies })),
  )
  for (const { status, body } of answers)
    assert.ok(status === 200 || body.code === 'write_conflict', body.code)
  assert.ok(answers.some(({ status }) => status === 200))
  const { policies } = await readBack('right_one')
  assert.ok(
    sets.some((set) => JSON.stringify(set) === JSON.stringify(policies)),
    JSON.stringify(policies),
  )
})

test('only the owner of an ordinary table sets its policies, with the right for expressions', async () => {
  await sql(`create table parts (id int, user_id uuid) partition by range (id); create table part partition of parts for values from (0) to (9);
    create table parent (id int, user_id uuid); create table child () inherits (parent); create view looks as select 1 as id; create schema mine; create table mine.thing (id int primary key, user_id uuid)`)
  await withClient(testServerUrl().replace(/\/[^/]*$/, new URL(database.url).pathname), (client) =>
    client.query('create table foreign_owned (id int, user_id uuid); grant all on foreign_owned to public'),
  )
  // The service reads the catalogue again after a change of its own.
  await createTable('made_later', [TEXT])
  const owner = { policies: [{ preset: 'owner' }] }
  for (const [table, status] of [['parts', 400], ['part', 400], ['parent', 400], ['child', 400], ['looks', 400], ['missing', 404], ['foreign_owned', 403], ['service_idempotency', 400]] as const)
    assert.equal((await secure(table, owner)).status, status, table) // biome-ignore format: a table
  assert.equal((await secure('pg_class', { ...owner, schema_name: 'pg_catalog' })).status, 400)
  assert.equal((await secure('thing', { ...owner, schema_name: 'mine' })).status, 200)
  const inSchema = await adas.send('PUT', '/gateway/insert', {
    body: { table_name: 'mine.thing', insert_body: { id: 1 } },
  })
  assert.equal(inSchema.status, 200, inSchema.text)

  const weak = await keyWith(['management.tables.write'])
  const own = { policies: [{ name: 'p', command: 'select', roles: [roles.member], using: 'true' }] }
  const lacking = await secure('thing', { ...own, schema_name: 'mine' }, weak)
  assert.deepEqual(
    [lacking.status, lacking.body.data.details.required_right],
    [403, 'management.functions.write'],
  )
  const preset = await keyWith(['management.tables.write', 'mine.thing.*'])
  assert.equal((await secure('thing', { ...owner, schema_name: 'mine' }, preset)).status, 200)

  const elsewhere = await t.key(['management.*'])
  const off = await elsewhere.send('PUT', '/management/tables/any/row-level-security', {
    body: { enabled: true },
  })
  assert.deepEqual([off.status, off.body.code], [400, 'row_level_security_off'])
  assert.match(off.body.error, /clients\.default\.row_level_security\.enabled/)
})

test('on a client with row-level security a function is sql or plpgsql, and runs as its caller', async () => {
  const upsert = (text: string) =>
    admin.send('PUT', '/management/functions', { body: { ddl: `create function f() returns int ${text}` } })
  for (const text of [
    `language sql security definer as 'select 1'`,
    `language sql external security definer as 'select 1'`,
    `language sql set role = 'none' as 'select 1'`,
    `language sql set search_path from current as 'select 1'`,
    `language plpgsql set row_security = off as 'begin return 1; end'`,
    `language c as 'x', 'y'`,
    `language plperl as ''`,
    `language sql security invoker security definer as 'select 1'`,
    `language sql security definer security invoker as 'select 1'`,
  ]) {
    // biome-ignore format: a table
    const answer = await upsert(text)
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_function'], text)
  }
  assert.deepEqual(await sql(`select from pg_proc where proname = 'f'`), [])
  assert.equal((await upsert(`language plpgsql security invoker as 'begin return 1; end'`)).status, 200)
})
