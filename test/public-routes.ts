import assert from 'node:assert/strict'
import { withClient } from './database.ts'
import { actor, type Options, testService } from './harness.ts'

/** A service with books on the client `default`, and a caller without a key. */
export async function createRoutes(options: Options = {}) {
  const t = await testService(options)
  const sql = async (text: string) =>
    (await withClient(t.clientUrl, (client) => client.query(text))).rows as Record<string, unknown>[]
  await sql(TABLES)
  let routes = 0
  return {
    t,
    sql,
    stranger: actor(t.url, {}),
    /** Creates a route without a key on the table of books, and returns its key. */
    async route(facts: Readonly<Record<string, unknown>>): Promise<string> {
      const route_key = `route-${++routes}`
      const fixed = { client_name: 'default', requires_key: false, table_name: 'book' }
      const answer = await t.admin.post('/admin/public-routes', { route_key, ...fixed, ...facts })
      assert.equal(answer.status, 201, answer.text)
      return route_key
    },
    change: (key: string, body: Readonly<Record<string, unknown>>) =>
      t.admin.send('PATCH', `/admin/public-routes/${key}`, { body }),
  }
}

const TABLES = `
  create table book (id int primary key, title text not null, genre text, is_public boolean default false,
    secret text default md5(random()::text) unique, price numeric, data jsonb);
  insert into book values (1, 'One', 'novel', true, 's1', 10), (2, 'Two', 'novel', false, 's2', 20), (3, 'Three', null, true, 's3', 30.50);
  create table author (id int primary key, book_id int references book);
  insert into author values (1, 1);
  create table entry (id int primary key, owner text, size int, is_big boolean generated always as (size > 10) stored);
  create function lowered() returns trigger language plpgsql as $$ begin new.owner := lower(new.owner); return new; end $$;
  create trigger lowered before insert or update on entry for each row execute function lowered();
  create table once (id int primary key, title text, token text default 'hush' unique)`
