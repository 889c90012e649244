import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { OWN_LOCKS, testDatabase, withClient } from '#test/database.ts'
import { type Actor, actor } from '#test/harness.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const {
  t,
  users,
  roles,
  sql,
  database,
  admin,
  adas,
  beas,
  stranger,
  createTable,
  secure,
  secured,
  readBack,
  insert,
  fetched,
} = await createSecuredTables()
const { ada, bea } = users

test('owner: every operation reaches the rows of the user of the session, and no others', async () => {
  await createTable('todo', [
    TEXT,
    USER,
    { name: 'rank', data_type: 'integer' },
    { name: 'nr', data_type: 'serial' },
  ])
  await createTable('step', [
    TEXT,
    USER,
    { name: 'todo_id', data_type: 'bigint', references: { table: 'todo', column: 'id' } },
  ])
  await secured('todo', [{ preset: 'owner' }])
  await secured('step', [{ preset: 'owner', column: 'user_id' }])

  const made = await insert(adas, 'todo', { text: 'a1', rank: 1 })
  assert.deepEqual([made.status, made.body.data[0].user_id], [200, ada.id], made.text)
  // Rows with different members, where the gateway writes out the defaults.
  const many = await insert(beas, 'todo', [
    { text: 'b1', rank: 1 },
    { id: 50, text: 'b2' },
    { text: 'b3', rank: 3 },
  ])
  assert.deepEqual(
    [...new Set(many.body.data?.map((row: { user_id: string }) => row.user_id))],
    [bea.id],
    many.text,
  )
  assert.equal((await insert(beas, 'step', { text: 'of b1', todo_id: many.body.data[0].id })).status, 200)
  for (const [who, row] of [[adas, { text: 'x', user_id: bea.id }], [stranger, { text: 'x' }], [stranger, { text: 'x', user_id: ada.id }]] as const)
    assert.equal((await insert(who, 'todo', row)).body.code, 'permission_denied') // biome-ignore format: a table

  const texts = (rows: readonly { text: string }[]) => rows.map(({ text }) => text)
  const seen = [[adas, ['a1']], [beas, ['b1', 'b3', 'b2']]] as const // biome-ignore format: a table
  for (const [who, own] of seen) {
    assert.deepEqual(texts(await fetched(who, 'todo')), own)
    assert.equal((await who.post('/query/count', { table_name: 'todo' })).body.count, own.length)
    assert.equal(
      (await who.post('/gateway/fetch', { table_name: 'todo', count: 'exact', limit: 1 })).body.count,
      own.length,
    )
    const byValue = await who.get('/data?view=todo&eq_column=rank&eq_value=1')
    assert.deepEqual(texts(byValue.body.data), own.slice(0, 1))
    const grouped = await who.post('/gateway/fetch', {
      table_name: 'todo', group_by: 'user_id', aggregation_column: 'rank', aggregation_strategy: 'cumulative_sum',
    }) // biome-ignore format: short
    assert.deepEqual(grouped.body.post_processing.grouped.map(({ aggregation }: { aggregation: { count: number } }) => aggregation.count), [own.length > 1 ? 2 : 1]) // biome-ignore format: short
    const related = await fetched(who, 'todo', { columns: 'text,step(text)' })
    assert.deepEqual(related.map(({ step }: { step: unknown[] }) => step.length), own.map((text) => (text === 'b1' ? 1 : 0))) // biome-ignore format: short
    const back = await fetched(who, 'step', { columns: 'text,todo(text)' })
    assert.deepEqual(back, who === beas ? [{ text: 'of b1', todo: { text: 'b1' } }] : [])
    const inOne = await who.post('/gateway/transaction', {
      operations: [{ id: 'read', kind: 'fetch', payload: { table_name: 'todo' } }],
    })
    assert.equal(inOne.body.results[0].data.length, own.length)
  }
  assert.equal(await fetched(stranger, 'todo'), 'permission_denied')
  assert.equal((await stranger.post('/query/count', { table_name: 'todo' })).status, 403)

  const rename = (who: Actor, where: object) =>
    who.post('/gateway/update', { table_name: 'todo', set: { text: 'taken' }, ...where })
  const ofBea = { conditions: [{ eq_column: 'id', eq_value: 50 }] }
  assert.equal((await rename(adas, ofBea)).body.affected_rows, 0)
  assert.equal((await rename(stranger, ofBea)).status, 403)
  const given = await adas.post('/gateway/update', {
    table_name: 'todo',
    set: { user_id: bea.id },
    allow_unbounded: true,
  })
  assert.equal(given.body.code, 'permission_denied', given.text)
  const remove = (who: Actor) =>
    who.send('DELETE', '/gateway/delete', { body: { table_name: 'todo', allow_unbounded: true } })
  assert.equal((await rename(adas, { allow_unbounded: true })).body.affected_rows, 1)
  assert.equal((await remove(adas)).body.affected_rows, 1)
  assert.equal((await remove(stranger)).status, 403)
  const conflicting = await insert(
    adas,
    'todo',
    { id: 50, text: 'mine' },
    { on_conflict: 'id', update_body: { text: 'mine' } },
  )
  assert.ok([403, 409].includes(conflicting.status), conflicting.text)
  const both = await adas.post('/gateway/transaction', {
    operations: [
      { id: 'one', kind: 'insert', payload: { table_name: 'todo', insert_body: { text: 'a2' } } },
      { id: 'two', kind: 'update', payload: { table_name: 'todo', set: { text: 'x' }, ...ofBea } },
    ],
  })
  assert.deepEqual([both.status, both.body.results[1]?.affected_rows], [200, 0], both.text)

  // A function runs as its caller.
  const ddl =
    'create function mine() returns setof todo language sql stable as $$ select * from todo order by id $$'
  assert.equal((await admin.send('PUT', '/management/functions', { body: { ddl } })).status, 200)
  const called = async (who: Actor) => {
    const { status, body } = await who.post('/rpc/mine')
    return status === 200 ? body.data.map(({ text }: { text: string }) => text) : body.code
  }
  assert.deepEqual(
    [await called(adas), await called(beas), await called(stranger)],
    [['a2'], ['b1', 'b3', 'b2'], 'permission_denied'],
  )
  assert.equal((await fetched(admin, 'todo')).length, 4)
})

test('organization, public_read and signed_in_read show their rows', async () => {
  const org = async (who: typeof ada, slug: string) => {
    const made = await who.post('/api/auth/organization/create', { name: slug, slug })
    assert.equal(made.status, 200, made.text)
    return made.body.id
  }
  const [acme, beta] = [await org(ada, 'acme'), await org(bea, 'beta')]
  await createTable('project', [TEXT, { name: 'organization_id', data_type: 'text' }])
  await secured('project', [{ preset: 'organization' }])
  assert.equal((await insert(adas, 'project', { text: 'p1' })).body.data?.[0].organization_id, acme)
  assert.equal((await insert(beas, 'project', { text: 'p2' })).body.data?.[0].organization_id, beta)
  assert.equal((await insert(beas, 'project', { text: 'p3', organization_id: acme })).status, 403)
  assert.deepEqual(
    [(await fetched(adas, 'project')).length, await fetched(stranger, 'project')],
    [1, 'permission_denied'],
  )
  await ada.post('/api/auth/organization/set-active', { organizationId: null })
  assert.deepEqual(await fetched(adas, 'project'), [])

  await createTable('page', [TEXT])
  await insert(admin, 'page', { text: 'hello' })
  await secured('page', [{ preset: 'public_read' }])
  for (const who of [adas, stranger]) {
    assert.equal((await fetched(who, 'page')).length, 1)
    assert.equal((await insert(who, 'page', { text: 'x' })).status, 403)
  }
  await secured('page', [{ preset: 'signed_in_read' }])
  assert.deepEqual(
    [(await fetched(adas, 'page')).length, await fetched(stranger, 'page')],
    [1, 'permission_denied'],
  )
})

test('policies are read back as they can be set again, also after their columns were renamed', async () => {
  await createTable('draft', [
    TEXT,
    USER,
    { name: 'team', data_type: 'varchar' },
    { name: 'open', data_type: 'boolean' },
  ])
  const claim = (name: string) => `(current_setting('request.claims')::json ->> '${name}')`
  const own = { name: 'own', command: 'all', roles: [roles.member] }
  await secured('draft', [
    { preset: 'owner' },
    { preset: 'organization', column: 'team' },
    {
      ...own,
      using: `open and user_id = ${claim('user_id')}::uuid`,
      check: `text ilike 'a%' or team in ('x', ${claim('role')})`,
    },
  ])
  const rename = (column_name: string, new_name: string) =>
    admin.send('PATCH', '/management/tables/draft', {
      body: { operations: [{ operation: 'rename_column', column_name, new_name }] },
    })
  for (const [before, now] of [['user_id', 'user'], ['team', 'Team'], ['open', 'is_open']] as const)
    assert.equal((await rename(before, now)).status, 200) // biome-ignore format: a table
  const setAgain = async () => {
    const { policies } = await readBack('draft')
    const again = await secure('draft', { policies })
    assert.deepEqual([again.status, again.body.data?.policies], [200, policies], again.text)
    return policies
  }
  const policies = await setAgain()
  assert.deepEqual(policies.slice(0, 2), [
    { preset: 'organization', column: 'Team' },
    { preset: 'owner', column: 'user' },
  ])
  assert.deepEqual(await setAgain(), policies)
  assert.equal((await insert(adas, 'draft', { text: 'a' })).status, 200)
  assert.deepEqual([(await fetched(adas, 'draft')).length, await fetched(beas, 'draft')], [1, []])

  // A preset whose expression was changed in the database is read back as a policy of its own.
  await sql('alter policy gatehouse_organization on draft using (is_open) with check (is_open)')
  assert.equal((await setAgain())[0].name, 'gatehouse_organization')
  const invented = await secure('draft', { policies: [{ ...own, name: 'gatehouse_new', using: 'true' }] })
  assert.deepEqual([invented.status, invented.body.code], [400, 'invalid_policy'])

  await secured('draft', [])
  const defaults = await sql(
    `select column_name from information_schema.columns where table_name = 'draft' and column_default is not null and column_name = 'user'`,
  )
  assert.deepEqual(defaults, [], 'a former preset leaves no default')
})

test('a new table is closed until its policies are set, also where default privileges would open it', async () => {
  await sql(`alter default privileges grant all on tables to ${roles.anon}, ${roles.member}`)
  await createTable('closed', [TEXT])
  await insert(admin, 'closed', { text: 'a' })
  assert.deepEqual(
    [await fetched(stranger, 'closed'), await fetched(adas, 'closed')],
    ['permission_denied', 'permission_denied'],
  )
  await sql('alter default privileges grant all on tables to public')
  await createTable('public_one', [TEXT])
  await insert(admin, 'public_one', { text: 'a' })
  assert.deepEqual([await fetched(stranger, 'public_one'), await fetched(adas, 'public_one')], [[], []])
  await sql(`alter default privileges revoke all on tables from public, ${roles.anon}, ${roles.member}`)
  await secured('public_one', [{ preset: 'signed_in_read' }])
  assert.equal((await fetched(adas, 'public_one')).length, 1)
})

test('the answer is what the change has made, not what others make of it afterwards', async () => {
  await createTable('followed', [TEXT, USER])
  const waiting = `select from ${OWN_LOCKS} where not granted`
  await withClient(t.loggingUrl, async (log) => {
    const change = await withClient(database.url, async (holder) => {
      await holder.query('begin; lock table followed')
      // An object, because an async function would wait for a promise that it returns.
      const started = { answer: secured('followed', [{ preset: 'owner' }]) }
      while ((await holder.query(waiting)).rowCount === 0) await sleep(10)
      await log.query('begin; lock table database_audit_log')
      await holder.query('rollback')
      return started
    })
    // It is committed, and its end cannot be logged yet.
    while ((await log.query(waiting)).rowCount === 0) await sleep(10)
    await sql('alter policy gatehouse_owner on followed using (true)')
    await log.query('rollback')
    assert.deepEqual((await change.answer).policies, [{ preset: 'owner', column: 'user_id' }])
  })
  assert.equal((await readBack('followed')).policies[0].using, 'true')
})

test('policies of a table that is dropped before they are set are 404', async () => {
  await createTable('dropped', [TEXT, USER])
  await withClient(database.url, async (holder) => {
    await holder.query('begin; drop table dropped')
    const change = secure('dropped', { policies: [{ preset: 'owner' }] })
    const waiting = `select from ${OWN_LOCKS} where not granted`
    while ((await holder.query(waiting)).rowCount === 0) await sleep(10)
    await holder.query('commit')
    const { status, body } = await change
    assert.deepEqual([status, body.code], [404, 'table_not_found'])
  })
})

test('a client that was registered over HTTP is told to be configured for row-level security', async () => {
  const { url } = await testDatabase()
  assert.equal((await t.admin.post('/admin/clients', { client_name: 'registered', url })).status, 201)
  const { apiKey } = await t.key(['management.*'], { client_name: 'registered' })
  const there = actor(t.url, { apikey: apiKey, 'x-service-client': 'registered' })
  const registered = await there.send('PUT', '/management/tables/any/row-level-security', {
    body: { enabled: true },
  })
  assert.deepEqual([registered.status, registered.body.code], [400, 'row_level_security_off'])
  assert.match(registered.body.error, /give this one its url/)
})
