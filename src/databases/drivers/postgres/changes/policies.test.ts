import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { feedDatabase, feedOn, publicTable, told } from '#test/changes.ts'
import { testServerUrl, withClient } from '#test/database.ts'

const { url, sql, session } = await feedDatabase()
const database = `"${new URL(url).pathname.slice(1)}"`
const suffix = randomBytes(4).toString('hex')
const [anonymousRole, signedInRole, otherRole] = [`anon_${suffix}`, `member_${suffix}`, `other_${suffix}`]
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
await onServer(`create role ${anonymousRole} nologin; create role ${signedInRole} nologin; create role ${otherRole} nologin;
  grant ${anonymousRole}, ${signedInRole}, ${otherRole} to "${new URL(url).username}"`)
const { feed, live, ended, names, read } = feedOn(url, { rowLevelSecurity: { anonymousRole, signedInRole } })
// The database is dropped by then.
after(() => onServer(`drop role ${anonymousRole}; drop role ${signedInRole}; drop role ${otherRole}`))
const USER = `(current_setting('request.claims', true)::json ->> 'user_id')::uuid`
await sql(`create table doc (id int primary key, owner uuid); alter table doc enable row level security;
  create table member (doc int, who uuid, team int); create table team (id int primary key, closed boolean);
  create policy reading on doc for select to ${signedInRole} using (owner = ${USER} or id in (select doc from member where who = ${USER}));
  create policy writing on doc for update to ${signedInRole} using (now() > 'epoch');
  create policy others on doc for select to pg_monitor using (now() > 'epoch')`)
const hooks = async (table: string) =>
  (await sql(`select count(*)::int as count from pg_trigger where tgrelid = '${table}'::regclass`))[0].count

test('tables that the policies of a live table read are noted without keys', async () => {
  await live('doc')
  assert.deepEqual(await feed.policies(publicTable('doc')), {
    claims: ['user_id'],
    tables: [publicTable('member')],
  })
  assert.deepEqual(await names(), ['doc'])
  const start = await feed.position()
  await sql(
    `insert into member values (1, null, 1); update member set who = null where false; delete from member where false`,
  )
  const first = await read(start)
  assert.deepEqual(told(first), ['member reset watched'])
  await sql('update member set who = who where false')
  assert.deepEqual(told(await read(first.position)), [])
})

test('a policy that is changed in the database is told, and what it reads is noted from then on', async () => {
  const start = await feed.position()
  await sql(
    `alter table member enable row level security; create policy joined on member using (team in (select id from team where not closed))`,
  )
  assert.deepEqual(told(await read(start)), ['member reset table_changed'])
  assert.equal(await hooks('team'), 0)
  assert.deepEqual(await feed.policies(publicTable('doc')), {
    claims: ['user_id'],
    tables: [publicTable('member'), publicTable('team')],
  })
  assert.equal(await hooks('team'), 4)
  const next = await feed.position()
  await sql(
    `alter policy joined on member using (team in (select id from team where closed)); insert into team values (1)`,
  )
  assert.deepEqual(told(await read(next)), ['member reset policy_changed', 'team reset watched'])
})

test('a policy that depends on the time, or on what is not known, is not live', async () => {
  await sql(`create table timed (id int primary key, until timestamptz); alter table timed enable row level security;
    create policy now on timed using (until > now())`)
  await live('timed')
  assert.equal(await feed.policies(publicTable('timed')), 'not_live')
  await sql('alter policy now on timed using (until is null)')
  assert.deepEqual(await feed.policies(publicTable('timed')), { claims: [], tables: [] })
  await sql(
    `create view closed as select id from team; drop policy now on timed; create policy now on timed using (id in (select id from closed))`,
  )
  assert.equal(await feed.policies(publicTable('timed')), 'not_live')
  await sql(`create type tenant as (id text); alter table timed add tenant tenant;
    create function tenant_text(tenant) returns text language sql as 'select current_setting(''request.claims'', true)';
    create cast (tenant as text) with function tenant_text(tenant);
    drop policy now on timed; create policy now on timed using (tenant::text = 'a')`)
  assert.equal(
    await feed.policies(publicTable('timed')),
    'not_live',
    'a cast hides the function that it calls',
  )
  await sql('alter table timed disable row level security')
  assert.deepEqual(await feed.policies(publicTable('timed')), { claims: [], tables: [] })
  await ended('timed')
})

test('a watched table becomes live and is watched again, and goes with the last table that reads it', async () => {
  await live('team')
  const start = await feed.position()
  await sql('insert into team values (2)')
  assert.deepEqual(told(await read(start)), ['team insert {"id":2}'])
  await ended('team')
  assert.deepEqual(await names(), ['doc'])
  assert.equal(await hooks('team'), 4)
  await ended('doc')
  assert.deepEqual([await hooks('team'), await hooks('member'), await hooks('doc')], [0, 0, 0])
  assert.deepEqual(await sql(`select from pg_class where relname like 'service_changes%'`), [])
})

test('a watched table that is locked refuses, at once after the first time, until it is free', async () => {
  await live('doc')
  await sql(
    `create table extra (id int primary key); create policy more on doc for select to ${anonymousRole} using (id in (select id from extra))`,
  )
  const writer = await session()
  await writer.run('begin; lock table extra in row exclusive mode')
  // The wait for a lock that each attempt is allowed. A rollback leaves a sequence as it is.
  const server = new URL(testServerUrl())
  server.pathname = new URL(url).pathname
  await withClient(server.href, (client) =>
    client.query(`create sequence patience; grant select on patience to public; create function note_patience() returns event_trigger security definer language plpgsql as
      $$ begin perform setval('public.patience', extract(milliseconds from current_setting('lock_timeout')::interval)::int); end $$;
      create event trigger patience on ddl_command_start when tag in ('CREATE TRIGGER') execute function note_patience()`),
  )
  const patience = async () => Number((await sql('select last_value from patience'))[0].last_value)
  await assert.rejects(feed.policies(publicTable('doc')), { code: 'object_busy' })
  assert.equal(await patience(), 2_000)
  await assert.rejects(feed.policies(publicTable('doc')), { code: 'object_busy' })
  assert.equal(await patience(), 10, 'writers do not wait behind each stream that begins')
  await writer.run('rollback')
  await writer.end()
  const reads = await feed.policies(publicTable('doc'))
  assert(reads !== 'not_live' && reads.tables.some(({ table }) => table === 'extra'))
})

test('a policy that reads a partition by its name is not live, since writes to its parent are not told', async () => {
  await sql(`create table parted (id int primary key) partition by range (id);
    create table part partition of parted for values from (0) to (100);
    create table guarded (id int primary key); alter table guarded enable row level security;
    create policy reading on guarded to ${signedInRole} using (id in (select id from part))`)
  await live('guarded')
  assert.equal(await feed.policies(publicTable('guarded')), 'not_live')
  await ended('guarded')
})

test('functions that only read claims are seen through, and a change of one is told as a change of the policies', async () => {
  await sql(`create function uid() returns uuid language sql stable as $$ select ${USER} $$;
    create function org() returns text language sql stable return current_setting('request.claims', true)::json ->> 'organization_id';
    create table called (id int primary key, owner uuid, org text); alter table called enable row level security;
    create policy reading on called to ${signedInRole} using (owner = uid() or org = org())`)
  await live('called')
  const reads = () => feed.policies(publicTable('called'))
  assert.deepEqual(await reads(), { claims: ['organization_id', 'user_id'], tables: [] })
  const start = await feed.position()
  await sql(
    `create or replace function uid() returns uuid language sql stable as $$ select current_setting('request.jwt.claims', true)::uuid $$`,
  )
  const changed = await read(start)
  assert.deepEqual(told(changed), ['called reset policy_changed'])
  assert.deepEqual(await reads(), { claims: 'all', tables: [] })
  for (const [change, back] of [
    [
      `create or replace function uid() returns uuid language sql stable as $$ select now()::text::uuid $$`,
      '',
    ],
    [
      `create or replace function uid() returns uuid language sql stable as $$ select ${USER} $$; alter function uid() immutable`,
      'alter function uid() stable',
    ],
    ['alter function uid() security definer', 'alter function uid() security invoker'],
    [`alter function uid() set timezone = 'UTC'`, 'alter function uid() reset all'],
    [
      `create function picked(json, json) returns text language sql as $$ select now()::text $$;
      create operator ->> (function = picked, leftarg = json, rightarg = json)`,
      'drop operator ->> (json, json)',
    ],
    [
      `create function current_setting(text, text) returns text language sql as $$ select now()::text $$`,
      'drop function current_setting(text, text)',
    ],
    // New sessions of the role find other types by the names in the body.
    [
      `alter database ${database} set search_path = public, pg_catalog`,
      `alter database ${database} set search_path = public`,
    ],
    [
      `create or replace function uid() returns uuid language plpgsql stable as $$ begin return ${USER}; end $$`,
      `create or replace function uid() returns uuid language sql stable as $$ select ${USER} $$`,
    ],
    [
      `create function team_of(text) returns text language sql stable as $$ select $1 $$; create policy more on called using (org = team_of('a'))`,
      'drop policy more on called',
    ],
  ] as const) {
    const before = await feed.position()
    await sql(change)
    assert.deepEqual(told(await read(before)), ['called reset policy_changed'], change)
    assert.equal(await reads(), 'not_live', change)
    if (back !== '') {
      await sql(back)
      assert.deepEqual(await reads(), { claims: ['organization_id', 'user_id'], tables: [] }, back)
    }
  }
  await ended('called')
})

test('a client with policies for other roles, or without, leaves the tables noted that the policies of this one read', async () => {
  await sql(`create table shared (id int primary key); alter table shared enable row level security;
    create table inner_read (id int primary key); create table outer_read (id int primary key);
    create table unrelated (id int primary key);
    create policy inner_one on shared for select to ${signedInRole} using (id in (select id from inner_read));
    create policy outer_one on shared for select to ${otherRole} using (id in (select id from outer_read))`)
  await live('shared')
  await feed.policies(publicTable('shared'))
  assert.deepEqual([await hooks('inner_read'), await hooks('outer_read')], [4, 0])
  const others = feedOn(url, { rowLevelSecurity: { anonymousRole, signedInRole: otherRole } })
  await others.feed.policies(publicTable('shared'))
  assert.deepEqual([await hooks('inner_read'), await hooks('outer_read')], [4, 4])
  await feedOn(url).live('unrelated')
  assert.deepEqual([await hooks('inner_read'), await hooks('outer_read')], [4, 4])
  await ended('shared', 'unrelated')
})
