import assert from 'node:assert/strict'
import { after, test } from 'node:test'
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
