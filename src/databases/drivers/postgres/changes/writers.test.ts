import assert from 'node:assert/strict'
import { test } from 'node:test'
import { feedDatabase, feedOn, publicTable, told } from '#test/changes.ts'
import { testServerUrl, withClient } from '#test/database.ts'
import { createCalls } from '#test/drivers/calls.ts'

const { url, sql, session } = await feedDatabase()
const { driver, feed, live, ended, names, read } = feedOn(url)
/** The tested database, as the superuser of the server. */
function databaseUrl(server: string): string {
  const address = new URL(server)
  address.pathname = new URL(url).pathname
  return address.href
}
const leftOver = () =>
  sql(`select relname as name from pg_class where relname like 'service_changes%'
    union all select proname from pg_proc where proname like 'service_changes%'
    union all select tgname from pg_trigger where tgname like 'service_changes%'`)

test('a writer never fails where the key column or the table has another name, and the next reader has the new ones', async () => {
  await sql('create table items (id int primary key, other int)')
  await live('items')
  const start = await feed.position()
  await sql('alter table items rename id to number')
  await sql('insert into items values (1, 10); update items set other = 11')
  assert.deepEqual(told(await read(start)), ['items reset table_changed'])
  assert.deepEqual(await names(), [], 'its triggers note no key')
  const renamed = await feed.position()
  assert.deepEqual(await feed.tables(), [{ table: publicTable('items'), key: ['number'] }])
  await sql('insert into items values (2)')
  const first = await read(renamed)
  assert.deepEqual(told(first), ['items insert {"number":2}'])
  await sql('alter table items rename to things; insert into things values (3)')
  const second = await read(first.position)
  assert.deepEqual(told(second), ['items reset table_changed', 'things reset table_changed'])
  await sql('insert into things values (4)')
  assert.deepEqual(told(await read(second.position)), ['things insert {"number":4}'])
})

test('two columns that exchange their names are told as a change of the table', async () => {
  await sql('create table pairs (a int primary key, b int); insert into pairs values (1, 2)')
  await live('pairs')
  const start = await feed.position()
  await sql(`begin; alter table pairs rename a to c; alter table pairs rename b to a; alter table pairs rename c to b;
    insert into pairs (b, a) values (5, 6); commit`)
  assert.deepEqual(told(await read(start)), ['pairs reset table_changed'])
  const position = await feed.position()
  await sql('update pairs set a = 7 where b = 5')
  assert.deepEqual(told(await read(position)), ['pairs update {"b":5}'])
  await sql('alter table pairs drop constraint pairs_pkey; insert into pairs values (5, 5)')
  assert.deepEqual(told(await read(position)), ['pairs reset table_changed'])
  assert(!(await names()).includes('pairs'))
  await ended('pairs')
})

test('a writer never fails where the tables of the feed are gone, and the next position begins anew', async () => {
  await sql('create table lone (id int primary key)')
  await live('lone')
  const start = await feed.position()
  await sql('alter table service_changes rename to elsewhere; insert into lone values (1)')
  assert.deepEqual(await feed.read(start), { lost: 'epoch' })
  await sql('drop table elsewhere; insert into lone values (2)')
  const position = await feed.position()
  assert.deepEqual(await feed.read(start), { lost: 'epoch' })
  await sql('insert into lone values (3)')
  assert.deepEqual(told(await read(position)), ['lone insert {"id":3}'])
  await sql('drop table service_changes_state, service_changes_mark')
  assert.deepEqual(await feed.read(position), { lost: 'epoch' })
  assert.match(await feed.position(), /^[0-9a-f]{32}\./)
  assert.deepEqual(await feed.read(position), { lost: 'epoch' }, 'the epoch is another one')
})

test('keys have one text, whatever the settings of the writer, and that of a fetch', async () => {
  await sql(`create type mood as enum ('fine', 'not "fine"'); create domain whole as numeric;
    create table every (at timestamptz, day date, span interval, amount whole, real float8, flag boolean, bytes bytea, mood mood, uuid uuid, padded char(5),
      primary key (at, day, span, amount, real, flag, bytes, mood, uuid, padded))`)
  await live('every')
  const start = await feed.position()
  await sql(`set datestyle = 'SQL, DMY'; set timezone = 'Asia/Kathmandu'; set intervalstyle = 'postgres_verbose'; set bytea_output = 'escape';
    set extra_float_digits = -5; set search_path = pg_temp;
    insert into public.every values ('2026-01-31 12:00:00.5+00', '2026-01-31', '1 month 2 days', 12.50, 0.1::float8 + 0.2::float8, true, '\\x00ff', 'not "fine"',
      '00000000-0000-0000-0000-000000000001', 'ab')`)
  const batch = await read(start)
  const fetched = await createCalls(() => driver).fetch({ table: 'every' })
  assert.deepEqual(told(batch), [`every insert ${fetched.text.slice(1, -1)}`])
})

test('writers with other roles, and those whom policies bind, are noted', async () => {
  const role = `writer_${url.slice(-12)}`
  await withClient(testServerUrl(), (client) =>
    client.query(`create role ${role} nologin; grant ${role} to "${new URL(url).username}"`),
  )
  await sql(`create table own (id int primary key, who text); grant usage on schema public to ${role}; grant select, insert, update, delete on own to ${role};
    alter table own enable row level security; create policy mine on own to ${role} using (who = 'me')`)
  await live('own')
  const start = await feed.position()
  await sql(
    `insert into own values (1, 'you'); set role ${role}; insert into own values (2, 'me'); update own set id = id + 10; delete from own where id = 12`,
  )
  assert.deepEqual(told(await read(start)), [
    'own insert {"id":1}',
    'own delete {"id":2}',
    'own delete {"id":12}',
  ])
  for (const text of [
    'table service_changes',
    'table service_changes_state',
    'delete from service_changes',
    `insert into service_changes (relation, op) values (1, 'i')`,
  ])
    await assert.rejects(sql(`set role ${role}; ${text}`), { code: '42501' }, text)
  const [{ name }] = await sql(
    `select p.oid::regproc::text as name from pg_trigger t join pg_proc p on p.oid = tgfoid where tgrelid = 'own'::regclass limit 1`,
  )
  const forged = `create temp table forged (id int); create trigger forged after insert on forged for each statement execute function ${name}()`
  await assert.rejects(sql(`set role ${role}; ${forged}`), { code: '42501' })
  await sql(`drop table own; drop owned by ${role}`)
  await withClient(testServerUrl(), (client) => client.query(`drop role ${role}`))
})

test('a session that takes the part of a replica, and a disabled trigger', async () => {
  await sql('create table always (id int primary key)')
  await live('always')
  const start = await feed.position()
  await withClient(databaseUrl(testServerUrl()), (client) =>
    client.query(`set session_replication_role = replica; insert into always values (1)`),
  )
  const { position } = await read(start)
  assert.deepEqual(told(await read(start)), ['always insert {"id":1}'])
  await sql('alter table always disable trigger service_changes_insert; insert into always values (2)')
  assert.deepEqual(told(await read(position)), ['always reset table_changed'])
  assert(!(await names()).includes('always'))
  const problems = (await feed.problems()).filter(({ table }) => table.table === 'always')
  assert.match(
    problems.map(({ why }) => why).join(),
    /^has triggers of live rows that are disabled or missing: PUT /,
  )
  await live('always')
  assert((await names()).includes('always'))
})

test('a live table is written as one without triggers, but not by a function that only has such a name', async () => {
  const isAlone = async () => (await driver.catalogue()).find('public', 'written')?.standsAlone
  await sql('create table written ("Id" int, "a""b" text, primary key ("a""b", "Id"))')
  await live('written')
  driver.invalidate()
  assert.equal(await isAlone(), true)
  await sql(`create function service_changes_0123456789abcdef() returns trigger language plpgsql as 'begin perform set_config(''x.y'', ''1'', false); return null; end';
    create trigger mine after insert on written for each statement execute function service_changes_0123456789abcdef()`)
  driver.invalidate()
  assert.equal(await isAlone(), false)
  await sql('drop function service_changes_0123456789abcdef cascade')
  await ended('written')
})

test('two clients of one database share the feed', async () => {
  const other = feedOn(url)
  await sql('create table ours (id int primary key); create table theirs (id int primary key)')
  await Promise.all([live('ours'), other.live('theirs')])
  const start = await other.feed.position()
  await sql('insert into ours values (1); insert into theirs values (2)')
  const batches = await Promise.all([read(start), other.read(start)])
  for (const batch of batches)
    assert.deepEqual(told(batch).toSorted(), ['ours insert {"id":1}', 'theirs insert {"id":2}'])
  await other.ended('ours')
  assert((await names()).includes('theirs') && !(await names()).includes('ours'))
  await ended('theirs')
})

test('a client with another role than that of the feed cannot make tables live', async () => {
  const role = `other_${url.slice(-12)}`
  await withClient(testServerUrl(), (client) => client.query(`create role ${role} login password 'x'`))
  await sql(
    `create table foreign_one (id int primary key); grant create on schema public to ${role}; create table foreign_two (id uuid primary key)`,
  )
  await live('foreign_one')
  await withClient(databaseUrl(testServerUrl()), (client) =>
    client.query(`alter table foreign_two owner to ${role}`),
  )
  const address = new URL(url)
  address.username = role
  address.password = 'x'
  const other = feedOn(address.href)
  await assert.rejects(other.live('foreign_two'), { code: 'permission_denied', status: 403 })
  await assert.rejects(other.feed.position(), { code: 'permission_denied' })
  await other.driver.close()
  await withClient(databaseUrl(testServerUrl()), (client) =>
    client.query(`drop owned by ${role}; drop role ${role}`),
  )
  await ended('foreign_one')
})

test('a table that is locked refuses, and the change can be made later', async () => {
  await sql('create table busy (id int primary key)')
  const writer = await session()
  await writer.run('begin; insert into busy values (1)')
  await assert.rejects(live('busy'), { code: 'object_busy' })
  await writer.run('rollback')
  await writer.end()
  await live('busy')
  await live('busy')
  assert((await names()).includes('busy'))
})

test('the last table that ends takes everything of the feed with it', async () => {
  await ended(...(await names()))
  assert.deepEqual(await leftOver(), [])
  await assert.rejects(feed.position(), { code: 'not_live' })
  assert.deepEqual(await feed.read(`${'0'.repeat(32)}.${'0'.repeat(32)}.3:`), { lost: 'epoch' })
  assert.deepEqual(await feed.tables(), [])
  await feed.prune(1_000)
})
