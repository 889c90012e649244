import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, type Answer, actor } from '#test/harness.ts'
import { createOrganization, createPerson, type Person } from '#test/organizations.ts'
import { createSecuredTables, TEXT } from '#test/secured-tables.ts'

const { t, sql, roles, admin, stranger, keyWith, createTable, secure, secured, readBack, insert } =
  await createSecuredTables()
const [ada, bea] = [await createPerson(t), await createPerson(t)]
const { id: acme } = await createOrganization(t, [
  [ada, 'owner'],
  [bea, 'member'],
])
const page = await keyWith(['gateway.read', 'gateway.write', 'gateway.delete'])
const as = ({ token }: Person) => actor(t.url, { ...page.headers, authorization: `Bearer ${token}` })
const [adas, beas] = [as(ada), as(bea)]

const ORGANIZATION = { name: 'organization_id', data_type: 'uuid' }
const AUTHOR = { name: 'author_id', data_type: 'uuid' }
const SELF = { preset: 'organization', insert_only_as_self: 'author_id' }
const AS_READ = { preset: 'organization', column: 'organization_id', insert_only_as_self: 'author_id' }

const created = (table: string, more: readonly object[] = []) =>
  createTable(table, [TEXT, ORGANIZATION, AUTHOR, ...more])
const update = (who: Actor, table_name: string, set: object) =>
  who.post('/gateway/update', { table_name, set, allow_unbounded: true })
const refused = ({ status, body }: Answer) => [status, body.code]
const edit = (table: string, ...operations: object[]) =>
  admin.send('PATCH', `/management/tables/${table}`, { body: { operations } })
const FORBIDDEN = [403, 'permission_denied']

/** Columns that the roles of callers may update. */
const updatable = async (table: string, role: string) =>
  (
    await sql(`select a.attname as name from pg_attribute a where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped
      and has_column_privilege('${role}', attrelid, attnum, 'update') order by 1`)
  ).map(({ name }) => name)

test('members insert as themselves, and no one changes the column', async () => {
  await created('ticket')
  assert.deepEqual((await secured('ticket', [SELF])).policies, [AS_READ])
  assert.deepEqual((await readBack('ticket')).policies, [AS_READ])
  const mine = await insert(adas, 'ticket', { text: 'a' })
  assert.deepEqual(
    [mine.body.data?.[0].author_id, mine.body.data?.[0].organization_id],
    [ada.id, acme],
    mine.text,
  )
  assert.equal((await insert(adas, 'ticket', { text: 'b', author_id: ada.id })).status, 200)
  for (const author_id of [bea.id, null])
    assert.deepEqual(refused(await insert(adas, 'ticket', { text: 'c', author_id })), FORBIDDEN)
  assert.deepEqual(refused(await insert(stranger, 'ticket', { text: 'c' })), FORBIDDEN)

  assert.equal((await update(beas, 'ticket', { text: 'by bea' })).body.affected_rows, 2)
  for (const [who, author_id] of [[adas, ada.id], [adas, bea.id], [beas, bea.id], [beas, null]] as const)
    for (const set of [{ author_id }, { text: 'x', author_id }])
      assert.deepEqual(refused(await update(who, 'ticket', set)), FORBIDDEN) // biome-ignore format: short
  const limited = { table_name: 'ticket', set: { text: 'one' }, limit: 1, allow_unbounded: true }
  assert.equal((await beas.post('/gateway/update', limited)).status, 200)
  const { id } = mine.body.data[0]
  const upsert = (update_body: object) =>
    insert(beas, 'ticket', { id, text: 'x' }, { on_conflict: 'id', update_body })
  assert.deepEqual(refused(await upsert({ author_id: bea.id })), FORBIDDEN)
  assert.equal((await upsert({ text: 'upserted' })).status, 200)
  assert.deepEqual(await sql('select distinct author_id from ticket'), [{ author_id: ada.id }])
  assert.equal((await update(admin, 'ticket', { author_id: bea.id })).status, 200)
})

test('no other policy of the table lifts it', async () => {
  await created('mixed', [{ name: 'user_id', data_type: 'uuid' }])
  const own = { name: 'open', command: 'all', roles: [roles.anon, roles.member], using: 'true' }
  await sql(`create policy theirs on mixed using (true); grant all on mixed to ${roles.anon}`)
  const set = await secured('mixed', [SELF, { preset: 'owner' }, own])
  assert.deepEqual(set.policies.map(({ preset = 'own' }) => preset).toSorted(), [
    'organization',
    'own',
    'owner',
  ])
  for (const who of [adas, beas, stranger])
    assert.deepEqual(refused(await insert(who, 'mixed', { text: 'x', author_id: acme })), FORBIDDEN)
  assert.equal((await insert(adas, 'mixed', { text: 'a' })).status, 200)
  for (const who of [adas, beas, stranger]) {
    assert.deepEqual(refused(await update(who, 'mixed', { author_id: bea.id })), FORBIDDEN)
    assert.equal((await update(who, 'mixed', { text: 'b' })).body.affected_rows, 1)
  }
  for (const role of Object.values(roles))
    assert.deepEqual(await updatable('mixed', role), ['id', 'organization_id', 'text', 'user_id'])

  // Another right to the column would do so.
  for (const right of ['update', 'update (author_id)']) {
    await secured('mixed', [])
    await sql(`grant ${right} on mixed to public`)
    const answer = await secure('mixed', { policies: [SELF] })
    assert.deepEqual([answer.status, answer.body.code], [409, 'object_in_use'], answer.text)
    assert.match(answer.body.error, /author_id/)
    await sql(`revoke ${right} on mixed from public`)
  }
})

test('adding and renaming columns keeps callers from the column, and from no other', async () => {
  await created('edited')
  await secured('edited', [SELF])
  const rename = (column_name: string, new_name: string) => ({
    operation: 'rename_column',
    column_name,
    new_name,
  })
  const add = (name: string) => ({ operation: 'add_column', column: { name, data_type: 'uuid' } })
  const first = await edit('edited', add('one'), add('two'), rename('one', 'One'), {
    operation: 'rename_table',
    new_name: 'edited_2',
  })
  assert.equal(first.status, 200, first.text)
  assert.deepEqual(await updatable('edited_2', roles.member), ['One', 'id', 'organization_id', 'text', 'two'])
  // The name goes to another column.
  const second = await edit(
    'edited_2',
    rename('author_id', 'Writer'),
    add('author_id'),
    rename('text', 'said'),
  )
  assert.equal(second.status, 200, second.text)
  const open = ['One', 'author_id', 'id', 'organization_id', 'said', 'two']
  assert.deepEqual(await updatable('edited_2', roles.member), open)
  assert.deepEqual(await updatable('edited_2', roles.anon), [])
  const renamed = { ...AS_READ, insert_only_as_self: 'Writer' }
  assert.deepEqual((await readBack('edited_2')).policies, [renamed])
  assert.deepEqual((await secured('edited_2', [renamed])).policies, [renamed])
  assert.deepEqual(await updatable('edited_2', roles.member), open)
  const row = await insert(adas, 'edited_2', { said: 'a', author_id: acme })
  assert.deepEqual([row.status, row.body.data?.[0].Writer], [200, ada.id], row.text)
})

test('it goes with its preset, and the column cannot be dropped before', async () => {
  await created('gone')
  await sql(`alter table gone alter author_id set default '${acme}'`)
  const { replaced_defaults } = await secured('gone', [SELF])
  assert.deepEqual(replaced_defaults, [{ column: 'author_id', default_expression: `'${acme}'::uuid` }])
  for (const cascade of [false, true]) {
    const answer = await admin.send('DELETE', '/management/tables/gone/columns/author_id', {
      body: { cascade },
    })
    assert.deepEqual([answer.status, answer.body.code], [409, 'object_in_use'], answer.text)
  }
  const plain = await secured('gone', [{ preset: 'organization' }])
  assert.deepEqual(
    [plain.policies, plain.other_policies, plain.replaced_defaults],
    [[{ preset: 'organization', column: 'organization_id' }], [], []],
  )
  assert.equal((await insert(adas, 'gone', { text: 'a', author_id: bea.id })).status, 200)
  assert.equal((await update(adas, 'gone', { author_id: ada.id })).body.affected_rows, 1)
  assert.equal((await insert(adas, 'gone', { text: 'b' })).body.data[0].author_id, acme)
  assert.equal(
    (await edit('gone', { operation: 'add_column', column: { name: 'more', data_type: 'text' } })).status,
    200,
  )
  assert.ok((await updatable('gone', roles.member)).includes('more'))
})

test('beside policies of others it is lifted with the right for expressions', async () => {
  await created('beside', [{ name: 'other_id', data_type: 'uuid' }])
  await sql(`create policy theirs on beside using (true); grant all on beside to ${roles.member}`)
  await secured('beside', [SELF])
  const key = await keyWith(['management.tables.write', 'beside.*'])
  for (const policies of [[], [{ preset: 'organization' }], [{ ...SELF, insert_only_as_self: 'other_id' }]]) {
    const answer = await secure('beside', { policies }, key)
    assert.equal(answer.body.data?.details.required_right, 'management.functions.write', answer.text)
  }
  assert.deepEqual(refused(await insert(adas, 'beside', { text: 'a', author_id: bea.id })), FORBIDDEN)
  assert.equal((await secure('beside', { policies: [SELF] }, key)).status, 200)
  assert.equal((await secure('beside', { enabled: false }, key)).status, 200)
})

test('a restriction that was changed in the database is one of others', async () => {
  await created('altered')
  await secured('altered', [SELF])
  await sql('alter policy gatehouse_insert_only_as_self on altered with check (author_id is not null)')
  const found = await readBack('altered')
  assert.deepEqual(found.policies, [{ preset: 'organization', column: 'organization_id' }])
  assert.deepEqual(
    found.other_policies.map(({ name, permissive }: { name: string; permissive: boolean }) => [
      name,
      permissive,
    ]),
    [['gatehouse_insert_only_as_self', false]],
  )
  assert.equal((await secured('altered', found.policies)).other_policies.length, 1)
  const again = await secured('altered', [SELF])
  assert.deepEqual([again.policies, again.other_policies.length], [[AS_READ], 1])
  assert.deepEqual((await secured('altered', [SELF], { replace: true })).policies, [AS_READ])
})

test('columns that cannot hold the user are refused, and any name is written as it is', async () => {
  await created('named', [{ name: 'size', data_type: 'integer' }])
  await sql(`alter table named add column "a""b'; drop table named; --" text`)
  await createTable('known_now', [TEXT])
  const before = await readBack('named')
  const own = { name: 'p', command: 'select', roles: [roles.member], using: 'true' }
  for (const policy of [
    { ...SELF, insert_only_as_self: 'size' },
    { ...SELF, insert_only_as_self: 'missing' },
    { ...SELF, insert_only_as_self: 'organization_id' },
    { ...SELF, insert_only_as_self: 'author_id"; drop table named; --' },
    { ...SELF, preset: 'owner', column: 'author_id' },
    { ...SELF, preset: 'public_read' },
    { ...SELF, preset: 'signed_in_read' },
    { ...SELF, preset: 'insert_only_as_self' },
    { ...own, insert_only_as_self: 'author_id' },
  ]) {
    const answer = await secure('named', { policies: [policy] })
    assert.equal(answer.status, 400, `${JSON.stringify(policy)}: ${answer.text}`)
    assert.deepEqual(await readBack('named'), before)
  }
  const hostile = `a"b'; drop table named; --`
  const quoted = { ...AS_READ, insert_only_as_self: hostile }
  assert.deepEqual((await secured('named', [quoted])).policies, [quoted])
  assert.deepEqual(await updatable('named', roles.member), [
    'author_id',
    'id',
    'organization_id',
    'size',
    'text',
  ])
  assert.equal((await insert(adas, 'named', { text: 'a' })).body.data[0][hostile], ada.id)
})

test('tables and schemas of any name have it, and views and partitions do not', async () => {
  await sql(`create schema "s""1'"; create table "s""1'"."t'; --" (id int primary key, organization_id uuid, "By ""me""" uuid);
    create view looks as select 1 as id, null::uuid as organization_id, null::uuid as author_id;
    create table parts (id int, organization_id uuid, author_id uuid) partition by range (id); create table part partition of parts default`)
  await createTable('seen_now', [TEXT])
  for (const table of ['looks', 'parts', 'part'])
    assert.equal((await secure(table, { policies: [SELF] })).status, 400, table)
  const policy = { ...AS_READ, insert_only_as_self: 'By "me"' }
  const at = { schema_name: `s"1'` }
  const path = encodeURIComponent("t'; --")
  const set = await secure(path, { ...at, policies: [policy] })
  assert.deepEqual([set.status, set.body.data?.policies], [200, [policy]], set.text)
  const operations = [{ operation: 'add_column', column: { name: 'more', data_type: 'text' } }]
  const edited = await admin.send('PATCH', `/management/tables/${path}`, { body: { ...at, operations } })
  assert.equal(edited.status, 200, edited.text)
  assert.deepEqual(await updatable(`"s""1''"."t''; --"`, roles.member), ['id', 'more', 'organization_id'])
})

test('beside edits of the table, the grants are those of its columns', async () => {
  await created('raced', [{ name: 'spare', data_type: 'text' }])
  for (let round = 0; round < 6; round++) {
    const [from, to] = round % 2 === 0 ? ['author_id', 'writer'] : ['writer', 'author_id']
    const column = { name: `c${round}`, data_type: 'text' }
    const policies = [{ ...SELF, insert_only_as_self: from }]
    const answers = await Promise.all([
      edit('raced', { operation: 'add_column', column }),
      secure('raced', { policies }),
      edit('raced', { operation: 'rename_column', column_name: from, new_name: to }),
      secure('raced', { policies }),
      admin.send('DELETE', `/management/tables/raced/columns/c${round - 1}`, { body: {} }),
    ])
    for (const { status, text } of answers) assert.ok([200, 400, 404, 409, 503].includes(status), text)
    const { policies: present } = await readBack('raced')
    const self = present[0]?.insert_only_as_self
    const all = (
      await sql(
        `select attname as name from pg_attribute where attrelid = 'raced'::regclass and attnum > 0 and not attisdropped order by 1`,
      )
    ).map(({ name }) => name)
    const expected = self === undefined ? [] : all.filter((name) => name !== self)
    assert.deepEqual(
      await updatable('raced', roles.member),
      expected,
      JSON.stringify(answers.map(({ text }) => text)),
    )
    // The next round begins with the name that it expects.
    if (!all.includes(to))
      await edit('raced', { operation: 'rename_column', column_name: from, new_name: to })
  }
  assert.ok(
    t.log.every((line) => !line.includes('"level":"error"')),
    'no failure of the service',
  )
})
