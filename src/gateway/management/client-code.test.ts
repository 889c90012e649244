import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { OWN_LOCKS, testDatabase, withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'

const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
// The check is made again when its column gets another type.
await sql(`create function leaves_traces(anyelement) returns boolean language plpgsql as $$ begin
    perform pg_advisory_lock(4711); create temporary table if not exists plain (id int primary key, text text); return true; end $$;
  create table checked (id int primary key, text text check (leaves_traces(text)));
  create table plain (id int primary key); insert into checked values (1, '1')`)
const t = await testService({
  config: { clients: { app: { url: database.url, max_connections: 1 }, wide: { url: database.url } } },
})
after(async () => {
  await t.stop()
  await database.drop()
})
const { apiKey } = await t.key(['*'], { client_name: 'app' })
const key = actor(t.url, { apikey: apiKey, 'x-service-client': 'app' })

test('code of the client that a change runs leaves nothing for the next caller of the connection', async () => {
  const operations = [{ operation: 'alter_type', column_name: 'text', data_type: 'integer' }]
  const changed = await key.send('PATCH', '/management/tables/checked', { body: { operations } })
  assert.equal(changed.status, 200, changed.text)
  const insert_body = { id: 1 }
  const made = await key.send('PUT', '/gateway/insert', { body: { table_name: 'plain', insert_body } })
  assert.equal(made.status, 200, made.text)
  const locks = await sql(`select from ${OWN_LOCKS} where locktype = 'advisory' and objid = 4711`)
  assert.deepEqual(locks, [])
})

test('a trigger that uses a column goes on working when the column gets another type', async () => {
  await sql(`create table line (id serial primary key, price int, total numeric);
    create function total() returns trigger language plpgsql as 'begin new.total := new.price * 2; return new; end';
    create trigger total before insert on line for each row execute function total()`)
  const { apiKey } = await t.key(['*'], { client_name: 'wide' })
  const caller = actor(t.url, { apikey: apiKey, 'x-service-client': 'wide' })
  const payload = { table_name: 'line', insert_body: { price: 3 } }
  const operations = [{ id: 'a', kind: 'insert', payload }]
  const write = () =>
    Promise.all([
      ...[1, 2, 3].map(() => caller.send('PUT', '/gateway/insert', { body: payload })),
      ...[1, 2, 3].map(() => caller.post('/gateway/transaction', { operations })),
    ])
  for (const type of ['bigint', 'numeric', 'real']) {
    for (const { status, text } of await write()) assert.equal(status, 200, text)
    await sql(`alter table line alter price type ${type}`)
  }
  for (const { status, text } of await write()) assert.equal(status, 200, text)
})
