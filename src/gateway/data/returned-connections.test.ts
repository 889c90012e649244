import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase, withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const KIB = 1_024
const MIB = 1_048_576

/** Text sizes of a row, around the chunk sizes of the socket, the row writer and the HTTP server. */
const SIZES = [
  200,
  3_600,
  16 * KIB - 40,
  16 * KIB,
  64 * KIB - 40,
  64 * KIB - 7,
  64 * KIB,
  64 * KIB + 9,
  700_000,
]

const database = await testDatabase()
await withClient(database.url, async (client) => {
  await client.query('create table filler (size int, n int, text text, primary key (size, n))')
  await client.query('create table written (id int primary key)')
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
  for (const size of SIZES)
    await client.query(
      `insert into filler select $1::int, n, repeat('x', $1::int) from generate_series(1, $2::int) n`,
      [size, Math.ceil((9 * MIB) / size)],
    )
})
const t = await testService({
  // One connection, so that each request reuses the previous one's. A short timeout reveals a connection that was not returned.
  config: {
    gateway: { max_rows: 100_000 },
    clients: { narrow: { url: database.url, max_connections: 1, statement_timeout: 2_000 } },
  },
})
after(async () => {
  await t.stop()
  await database.drop()
})
const key = await t.key(['*'], { client_name: 'narrow' })
const headers = { ...key.headers, 'x-service-client': 'narrow' }

type Reader = (address: URL) => Promise<string>

const fast: Reader = async (address) => (await fetch(address, { headers })).text()

/** Reads one chunk at a time, with pauses. */
const slow: Reader = (address) =>
  new Promise((resolve, reject) => {
    request(address, { headers }, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) {
        chunks.push(chunk)
        if (chunks.length % 8 === 0) await sleep(1)
      }
      resolve(Buffer.concat(chunks).toString())
    })
      .on('error', reject)
      .end()
  })

let id = 0

/** Reads rows, writes on the same connection, and checks that the write succeeded. */
async function readAndWrite(read: Reader, size: number, limit: number): Promise<void> {
  const address = new URL(`/data?view=filler&eq_column=size&eq_value=${size}&limit=${limit}`, t.url)
  const text = await read(address)
  const about = `${limit} rows of ${size} bytes`
  assert.equal(JSON.parse(text).data.length, limit, about)
  id++
  const insert = { table_name: 'written', insert_body: { id } }
  const written = await key.send('PUT', '/gateway/insert', { headers, body: insert })
  assert.equal(written.status, 200, `${about}: ${written.text}`)
  const found = await key.get(`/data?view=written&eq_column=id&eq_value=${id}`, { headers })
  assert.deepEqual(found.body.data, [{ id }], about)
}

/** The number of rows that make up this number of bytes, and one less and one more. */
const countsAround = (size: number, bytes: number): readonly number[] =>
  [-1, 0, 1].map((more) => Math.round(bytes / (size + 40)) + more).filter((limit) => limit > 0)

/** Sizes around the limit between buffered and streamed responses. */
const LONG = [MIB, MIB + 64 * KIB, 2 * MIB]

test('the connection can write after a response whose last rows arrive with the end of the statement', async () => {
  for (let limit = 286; limit < 300; limit++) await readAndWrite(fast, 3_600, limit)
})

test('the connection can write after a response of any size with a fast reader', async () => {
  for (const size of SIZES)
    for (const bytes of [16 * KIB, 64 * KIB, MIB - 64 * KIB, MIB + 16 * KIB, ...LONG])
      for (const limit of countsAround(size, bytes)) await readAndWrite(fast, size, limit)
})

test('the connection can write after a response of any size with a slow reader', async () => {
  for (const size of SIZES.slice(1)) {
    for (const bytes of LONG)
      for (const limit of countsAround(size, bytes)) await readAndWrite(slow, size, limit)
    await readAndWrite(slow, size, Math.floor((8.5 * MIB) / size))
  }
})

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
