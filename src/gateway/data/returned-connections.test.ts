import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { testDatabase, withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const database = await testDatabase()
await withClient(database.url, async (client) => {
  await client.query(`
    create function mark() returns text language plpgsql as $$ begin
      perform set_config('lock_timeout', '7s', false), set_config('app.mark', 'left', false), set_config('search_path', 'elsewhere', false);
      perform pg_advisory_lock(77), nextval('public.counted');
      create temp table if not exists left_behind (id int);
      return 'marked';
    end $$;
    create function mark_row() returns trigger language plpgsql as $$ begin perform public.mark(); return new; end $$;
    create sequence counted;
    create table triggered (id int primary key);
    create trigger marking before insert on triggered for each row execute function mark_row();
    create table defaulted (id int primary key, text text default mark());
    create table checked (id int primary key check (mark() = 'marked'));
    create function fit(int) returns int immutable language plpgsql as $$ begin perform public.mark(); return $1; end $$;
    create table indexed (id int primary key, n int);
    create index on indexed (id) where fit(n) > 0;
    create domain small as int check (mark() = 'marked');
    create type sized as (size small);
    create table typed (id int primary key, size small, record sized, sizes small[]);
    create table late (id int primary key);
    create view viewed as select mark() as text;
    create view through as select * from viewed;
    create view bare as select set_config('app.mark', 'left', false) as text;
    create view zone as select current_setting('TimeZone') as zone, current_setting('DateStyle') as style, '2026-01-01 00:00Z'::timestamptz as at;
    create view state as select current_setting('lock_timeout') as timeout, coalesce(current_setting('app.mark', true), '') as mark,
      current_setting('search_path') as path, to_regclass('pg_temp.left_behind')::text as temporary,
      (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks`)
})
const t = await testService({
  // One connection, so that each request reuses the previous one's. A short timeout reveals a connection that was not returned.
  config: {
    clients: { narrow: { url: database.url, max_connections: 1, statement_timeout: 2_000 } },
  },
})
after(async () => {
  await t.stop()
  await database.drop()
})
const key = await t.key(['*'], { client_name: 'narrow' })
const headers = { ...key.headers, 'x-service-client': 'narrow' }

test('session state left by database functions is reset before the next caller', async () => {
  const state = async () => (await key.post('/gateway/fetch', { table_name: 'state' }, { headers })).body.data
  const clean = await state()
  assert.deepEqual(clean, [{ timeout: '0', mark: '', path: '"$user", public', temporary: null, locks: 0 }])
  const insert = (table_name: string, insert_body: object) => () =>
    key.send('PUT', '/gateway/insert', { headers, body: { table_name, insert_body } })
  const operations = { kind: 'insert', payload: { table_name: 'triggered', insert_body: { id: 2 } } }
  const marking = {
    'a trigger': insert('triggered', { id: 1 }),
    'a default': insert('defaulted', { id: 1 }),
    'a check': insert('checked', { id: 1 }),
    'an index': insert('indexed', { id: 1, n: 1 }),
    'a domain': insert('typed', { id: 1, size: 1 }),
    'a domain in a record': insert('typed', { id: 2, record: { size: 1 } }),
    'a domain in an array': insert('typed', { id: 3, sizes: [1] }),
    'a condition on a record with a domain': () =>
      key.post(
        '/gateway/fetch',
        { table_name: 'typed', columns: ['id'], conditions: [{ column: 'record', value: { size: 1 } }] },
        { headers },
      ),
    'a view': () => key.post('/gateway/fetch', { table_name: 'viewed' }, { headers }),
    'a view of a view': () => key.post('/gateway/fetch', { table_name: 'through' }, { headers }),
    'a view without a function': () => key.post('/gateway/fetch', { table_name: 'bare' }, { headers }),
    'a view that is counted': () =>
      key.post(
        '/query/count',
        { table_name: 'viewed', conditions: [{ column: 'text', value: 'marked' }] },
        { headers },
      ),
    'a view that streams': () => key.get('/data?view=viewed&eq_column=text&eq_value=marked', { headers }),
    'a transaction': () =>
      key.post('/gateway/transaction', { operations: [{ id: 'a', ...operations }] }, { headers }),
  }
  for (const [name, mark] of Object.entries(marking)) {
    const answer = await mark()
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(await state(), clean, name)
  }
})

test('a trigger that is created after its table was cached leaves no reported settings on the connection', async () => {
  const insert = (id: number) =>
    key.send('PUT', '/gateway/insert', { headers, body: { table_name: 'late', insert_body: { id } } })
  assert.equal((await insert(1)).status, 200)
  await withClient(database.url, (client) =>
    client.query(`
      create function drift() returns trigger language plpgsql as $$ begin
        perform set_config('TimeZone', 'Asia/Tokyo', false), set_config('DateStyle', 'German', false); return new; end $$;
      create trigger drifting before insert on late for each row execute function drift()`),
  )
  assert.equal((await insert(2)).status, 200)
  const zone = await key.post('/gateway/fetch', { table_name: 'zone' }, { headers })
  assert.deepEqual(zone.body.data, [{ zone: 'UTC', style: 'ISO, MDY', at: '2026-01-01T00:00:00Z' }])
})

/** Shows the state of a session, and a function that changes it. */
const SESSION = `
  create function mark() returns boolean language plpgsql as $$ begin
    perform set_config('app.mark', 'left', false), pg_advisory_lock(77);
    return true;
  end $$;
  create view state as select coalesce(current_setting('app.mark', true), '') as mark,
    (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks;
  create table item (id int primary key);
  insert into item values (1);
  create type pair as (a int, b int);
  create table paired (id int primary key, pair pair);
  insert into paired values (1, (1, 2));`

const fetch = (table_name: string, more: object = {}) =>
  ['POST', '/gateway/fetch', { table_name, ...more }] as const
const put = (table_name: string, insert_body: object) =>
  ['PUT', '/gateway/insert', { table_name, insert_body }] as const
const CHECKED = 'create domain marked as int check (mark()); create type around as (m marked);'

type Case = readonly [name: string, sql: string, request: readonly ['POST' | 'PUT', string, object]]
/** Each in a database of its own, because one operator or cast that runs code counts for all tables. */
const implied: readonly Case[] = [
  [
    'an operator of a condition',
    `create function same(int, text) returns boolean language plpgsql as 'begin return mark(); end';
     create operator ~~ (leftarg = int, rightarg = text, function = same)`,
    fetch('item', { conditions: [{ operator: 'like', column: 'id', value: '1' }] }),
  ],
  [
    'an operator on a function of the system',
    'create operator @> (leftarg = int, rightarg = int, function = pg_try_advisory_lock)',
    fetch('item', { conditions: [{ operator: 'contains', column: 'id', value: 1 }] }),
  ],
  [
    'an operator of a view',
    `create function same(int, int) returns boolean language plpgsql as 'begin return mark(); end';
     create operator === (leftarg = int, rightarg = int, function = same);
     create view seen as select id from item where id === 1`,
    fetch('seen'),
  ],
  [
    'a cast to JSON of an answer',
    `create function told(p pair) returns json language plpgsql as 'begin perform mark(); return to_json(p.a); end';
     create cast (pair as json) with function told(pair)`,
    fetch('paired'),
  ],
  [
    'an implicit cast of a condition',
    `create function number(p pair) returns int language plpgsql as 'begin perform mark(); return p.a; end';
     create cast (pair as int) with function number(pair) as implicit;
     create function near(int, int) returns boolean language sql immutable as 'select true';
     create operator && (leftarg = int, rightarg = int, function = near)`,
    fetch('paired', { conditions: [{ operator: 'overlaps', column: 'pair', value: '(1,2)' }] }),
  ],
  [
    'a domain only inside of a record',
    `${CHECKED} create table holding (id int primary key, r around)`,
    put('holding', { id: 1, r: { m: 1 } }),
  ],
  [
    'a domain only inside of an array',
    `${CHECKED} create table holding (id int primary key, r marked[])`,
    put('holding', { id: 1, r: [1] }),
  ],
  [
    'a domain only inside of a record in an array',
    `${CHECKED} create table holding (id int primary key, r around[])`,
    put('holding', { id: 1, r: ['(1)'] }),
  ],
  [
    'a domain over a domain',
    `${CHECKED} create domain further as marked; create table holding (id int primary key, r further)`,
    put('holding', { id: 1, r: 1 }),
  ],
  [
    'a domain that only a view converts to',
    `${CHECKED} create view converted as select id::marked::int as id from item`,
    fetch('converted'),
  ],
  [
    'a domain whose check is a function of the system',
    `create domain locking as int check (pg_try_advisory_lock(value)); create table holding (id int primary key, r locking)`,
    put('holding', { id: 1, r: 1 }),
  ],
  [
    'a default of the system',
    `create table defaulted (id int primary key, word text default set_config('app.mark', 'left', false))`,
    put('defaulted', { id: 1 }),
  ],
  [
    'a check of the system',
    'create table locking (id int primary key check (pg_try_advisory_lock(id)))',
    put('locking', { id: 1 }),
  ],
]

test('operators, casts and domains that no name tells leave no session state either', async () => {
  const databases = await Promise.all(
    implied.map(async ([, sql]) => {
      const made = await testDatabase()
      await withClient(made.url, (client) => client.query(`${SESSION}${sql}`))
      return made
    }),
  )
  const service = await testService({
    config: {
      clients: Object.fromEntries(
        databases.map(({ url }, at) => [`case${at}`, { url, max_connections: 1, statement_timeout: 2_000 }]),
      ),
    },
  })
  const leaving: string[] = []
  for (const [at, [name, , [method, path, body]]] of implied.entries()) {
    const headers = { 'x-service-client': `case${at}` }
    const state = async () =>
      (await service.admin.post('/gateway/fetch', { table_name: 'state' }, { headers })).body.data
    assert.deepEqual(await state(), [{ mark: '', locks: 0 }], name)
    const answer = await service.admin.send(method, path, { body, headers })
    assert.equal(answer.status, 200, `${name} ${answer.text}`)
    if (!isDeepStrictEqual(await state(), [{ mark: '', locks: 0 }])) leaving.push(name)
  }
  assert.deepEqual(leaving, [])
  await service.stop()
  await Promise.all(databases.map((one) => one.drop()))
})
