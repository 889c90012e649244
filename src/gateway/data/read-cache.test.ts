import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { tagsOfAnswer, tagsOfWrite } from '#databases/clients/announce-writes.ts'
import type { Table } from '#databases/plan/catalogue.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { type Actor, actor, controlDatabase, testService } from '#test/harness.ts'
import { asksForFresh } from './read-cache.ts'

const database = await testDatabase()
const elsewhere = await testDatabase()
const controlUrl = await controlDatabase()
const config = {
  gateway: { enforce_api_keys: false, cache: { ttl: 60_000 } },
  clients: {
    app: { url: database.url },
    // The same database under another name and URL, and a different database.
    twin: { url: `${database.url}${database.url.includes('?') ? '&' : '?'}application_name=twin` },
    stranger: { url: elsewhere.url },
  },
}
/** Simulates two processes on one control database. */
const [t, other] = [await testService({ controlUrl, config }), await testService({ controlUrl, config })]
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
const here = actor(t.url, { 'x-service-client': 'app' })
const there = actor(other.url, { 'x-service-client': 'app' })
const admin = actor(t.url, { 'x-service-client': 'app', ...t.admin.headers })

before(() =>
  sql(`
    create table item (id int primary key, name text);
    create table unrelated (id int primary key);
    create view items as select count(*)::int as n from item;
    create table watched (id int primary key);
    create table log (id int);
    create function note() returns trigger language plpgsql as $$ begin insert into log values (new.id); return null; end $$;
    create trigger noted after insert on watched for each row execute function note();
    create table bare (id int primary key);
    create function mark() returns trigger language plpgsql as $$ begin update item set name = 'marked'; return null; end $$;
    create table parent (id int primary key);
    create table child (id int primary key, parent_id int references parent on delete cascade);
    create function add_item(id int) returns void language sql as $$ insert into item values (id, 'by function') $$;
    create view slow as select id, name from item, (select pg_sleep(0.5)) s;
    create table large as select n as id, repeat('x', 2000) as text from generate_series(1, 900) n`),
)

type RequestParts = { body: unknown; headers?: Record<string, string> }
async function read(who: Actor, table: string, { body, headers }: RequestParts = { body: {} }) {
  const answer = await who.post(
    '/gateway/fetch',
    { table_name: table, ...(body as object) },
    headers === undefined ? {} : { headers },
  )
  assert.equal(answer.status, 200, answer.text)
  return { rows: answer.body.data, outcome: answer.headers.get('x-service-cache'), text: answer.text }
}
/** Repeats the read until it is cached in both processes. */
async function warm(table: string) {
  for (const who of [here, there]) {
    await read(who, table)
    assert.equal((await read(who, table)).outcome, 'hit', table)
  }
}
const outcomes = async (table: string) =>
  [await read(here, table), await read(there, table)].map(({ outcome }) => outcome)
const insert = (table: string, row: object, who = here, headers: Record<string, string> = {}) =>
  who.send('PUT', '/gateway/insert', { headers, body: { table_name: table, insert_body: row } })
const ok = ({ status, text }: { status: number; text: string }) => assert.equal(status, 200, text)

test('an answer comes from the cache, the same in every byte, also groups and counts', async () => {
  ok(await insert('item', { id: 1, name: 'one' }))
  const first = await read(here, 'item')
  const second = await read(here, 'item')
  assert.deepEqual([first.outcome, second.outcome, second.text], ['miss', 'hit', first.text])
  assert.equal((await read(here, 'item', { body: { columns: 'id' } })).outcome, 'miss')
  const grouped = { body: { group_by: 'name' } }
  const [one, again] = [await read(here, 'item', grouped), await read(here, 'item', grouped)]
  assert.deepEqual([again.outcome, again.text], ['hit', one.text])
  assert.match(one.text, /post_processing/)
  const count = async () => {
    const { body, headers } = await here.post('/query/count', { table_name: 'item' })
    return [body.count, body.data.cache_lookup_outcome, headers.get('x-service-cache')]
  }
  assert.deepEqual(await count(), [1, 'miss', 'miss'])
  assert.deepEqual(await count(), [1, 'hit', 'hit'])
  const byColumn = () => here.get('/data?view=item&eq_column=id&eq_value=1')
  assert.deepEqual(
    [await byColumn(), await byColumn()].map(({ headers }) => headers.get('x-service-cache')),
    ['miss', 'hit'],
  )
})

test('a column that is read only for its groups does not make a read the same as one that returns it', async () => {
  await sql(`insert into item values (50, 'fifty')`)
  const grouped = (columns: string[]) =>
    read(here, 'item', {
      body: { columns, group_by: 'name', conditions: [{ eq_column: 'id', eq_value: 50 }] },
    })
  for (const [columns, row] of [
    [['id'], { id: 50 }],
    [['id', 'name'], { id: 50, name: 'fifty' }],
    [['id'], { id: 50 }],
  ] as const)
    assert.deepEqual((await grouped([...columns])).rows, [row])
  await sql('delete from item where id = 50')
})

test('a write through one client invalidates cached reads of every client of the same database, and no others', async () => {
  await withClient(elsewhere.url, (client) =>
    client.query('create table item (id int primary key, name text)'),
  )
  const as = (url: string, client: string) => actor(url, { 'x-service-client': client })
  const readers = [t.url, other.url].flatMap((url) => [as(url, 'app'), as(url, 'twin'), as(url, 'stranger')])
  const outcomesOf = () => Promise.all(readers.map(async (who) => (await read(who, 'item')).outcome))
  for (const [round, writer] of ['app', 'twin'].entries()) {
    await outcomesOf()
    assert.deepEqual(new Set(await outcomesOf()), new Set(['hit']))
    ok(await insert('item', { id: 900 + round, name: 'by another' }, as(other.url, writer)))
    assert.deepEqual(await outcomesOf(), ['miss', 'miss', 'hit', 'miss', 'miss', 'hit'], writer)
  }
  ok(
    await as(t.url, 'stranger').send('POST', '/gateway/delete', {
      body: { table_name: 'item', allow_unbounded: true },
    }),
  )
  assert.deepEqual(await outcomesOf(), ['hit', 'hit', 'miss', 'hit', 'hit', 'miss'])
  await sql('delete from item where id >= 900')
})

test('writes to a database of unknown identity invalidate all cached reads', () => {
  const table = { schema: 'public', name: 'item', standsAlone: true } as Table
  const meet = (answer: readonly string[], write: readonly string[]) =>
    answer.some((tag) => write.includes(tag))
  const [one, two, unknown] = ['1/5', '2/5', undefined]
  for (const [answer, write, ends] of [
    [one, one, true],
    [one, two, false],
    [one, unknown, true],
    [unknown, one, true],
    [unknown, unknown, true],
  ] as const)
    assert.equal(
      meet(tagsOfAnswer(answer, [table], false), tagsOfWrite(write, table)),
      ends,
      `${answer} ${write}`,
    )
})

test('a write invalidates cached reads of its table in every process before it responds, and no other tables', async () => {
  await warm('unrelated')
  for (let round = 0; round < 60; round++) {
    const [writer, reader] = round % 2 === 0 ? [here, there] : [there, here]
    await warm('item')
    ok(await insert('item', { id: 100 + round, name: 'x' }, writer))
    const { rows, outcome } = await read(reader, 'item', { body: { columns: 'id,name' } })
    assert.ok(
      rows.some(({ id }: { id: number }) => id === 100 + round),
      `round ${round} ${outcome}`,
    )
    assert.deepEqual(await outcomes('item'), ['miss', 'miss'])
  }
  assert.deepEqual(await outcomes('unrelated'), ['hit', 'hit'])
})

test('every kind of write invalidates the cache', async () => {
  const where = { conditions: [{ eq_column: 'id', eq_value: 1 }] }
  const ways: Record<string, () => Promise<{ status: number; text: string }>> = {
    update: () => here.post('/gateway/update', { table_name: 'item', set: { name: 'new' }, ...where }),
    delete: () => here.send('DELETE', '/gateway/delete', { body: { table_name: 'item', resource_id: 1 } }),
    transaction: () =>
      here.post('/gateway/transaction', {
        operations: [{ id: 'a', kind: 'insert', payload: { table_name: 'item', insert_body: { id: 2 } } }],
      }),
    window: () => insert('item', { id: 3 }, here, { 'x-service-insert-window': '20' }),
    sql: () => admin.post('/gateway/query', { query: `insert into item values (4, 'x')` }),
    function: () => here.post('/rpc/add_item', { id: 5 }),
    'a duplicate': () =>
      insert('item', { id: 5 }).then((answer) => ({ ...answer, status: answer.status - 209 })),
  }
  for (const [name, write] of Object.entries(ways)) {
    await warm('item')
    ok(await write())
    assert.deepEqual(await outcomes('item'), ['miss', 'miss'], name)
  }
})

test('cached reads of views, triggers, cascades and relations are invalidated by writes to the underlying tables', async () => {
  await warm('items')
  ok(await insert('item', { id: 10 }))
  assert.deepEqual(await outcomes('items'), ['miss', 'miss'])

  await warm('log')
  ok(await insert('watched', { id: 1 }))
  assert.deepEqual((await read(there, 'log')).rows, [{ id: 1 }])

  ok(await insert('parent', { id: 1 }))
  ok(await insert('child', { id: 1, parent_id: 1 }))
  await warm('child')
  ok(await here.send('DELETE', '/gateway/delete', { body: { table_name: 'parent', resource_id: 1 } }))
  assert.deepEqual((await read(there, 'child')).rows, [])

  ok(await insert('parent', { id: 2 }))
  const related = { body: { columns: 'id,child(id)' } }
  await read(there, 'parent', related)
  assert.equal((await read(there, 'parent', related)).outcome, 'hit')
  ok(await insert('child', { id: 2, parent_id: 2 }))
  assert.deepEqual((await read(there, 'parent', related)).rows, [{ id: 2, child: [{ id: 2 }] }])
})

test('a trigger created through one client is considered for writes of every client and process', async () => {
  const twin = actor(t.url, { 'x-service-client': 'twin' })
  for (const [place, who] of [here, twin, there].entries()) {
    // Both processes have the table without triggers in their catalogue.
    for (const [id, each] of [here, twin, there].entries()) ok(await insert('bare', { id }, each))
    await sql('delete from bare')
    await warm('item')
    ok(
      await admin.post('/gateway/query', {
        query: 'create trigger marks after insert on bare for each row execute function mark()',
      }),
    )
    await warm('item')
    ok(await insert('bare', { id: 9 }, who))
    assert.deepEqual(await outcomes('item'), ['miss', 'miss'], `writer ${place}`)
    ok(await admin.post('/gateway/query', { query: 'drop trigger marks on bare; delete from bare' }))
  }
})

test('a read that was under way while a row was written is not cached', async () => {
  const running = read(here, 'slow', { body: { columns: 'id', limit: 1 } })
  const sleeping = `select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`
  while ((await sql(sleeping)).length === 0) await sleep(5)
  ok(await insert('item', { id: 20 }, there))
  assert.equal((await running).outcome, 'miss')
  assert.equal((await read(here, 'slow', { body: { columns: 'id', limit: 1 } })).outcome, 'miss')
})

test('a caller can bypass the cache', async () => {
  await warm('item')
  await sql(`insert into item values (30, 'behind the back of the gateway')`)
  const has = (rows: { id: number }[]) => rows.some(({ id }) => id === 30)
  assert.equal(has((await read(here, 'item')).rows), false)
  const asked = await read(here, 'item', { body: {}, headers: { 'cache-control': 'no-cache' } })
  assert.deepEqual([asked.outcome, has(asked.rows)], ['bypass', true])
  for (const header of ['no-store', 'max-age=0', 'foo, NO-CACHE', 'no-cache, x'])
    assert.equal(asksForFresh(header), true, header)
  for (const header of [undefined, '', 'max-age=00', 'private', 'x-no-cache'])
    assert.equal(asksForFresh(header), false, String(header))
})

test('cached responses expire', async () => {
  await warm('unrelated')
  await sql('insert into unrelated values (1)')
  t.advance(45_000)
  assert.equal((await read(here, 'unrelated')).outcome, 'hit')
  t.advance(16_000)
  assert.deepEqual((await read(here, 'unrelated')).rows, [{ id: 1 }])
})

test('cached responses do not live longer when the clock of the database is set back', async () => {
  await warm('unrelated')
  await sql('insert into unrelated values (2)')
  t.advance(-3_600_000)
  assert.deepEqual((await read(here, 'unrelated')).rows, [{ id: 1 }, { id: 2 }])
  t.advance(3_600_000)
})

test('rights are asked for before, and a key without them learns nothing of what is cached', async () => {
  await warm('item')
  const key = await t.key(['unrelated.read'], { client_name: 'app' })
  const answer = await key.post(
    '/gateway/fetch',
    { table_name: 'item' },
    { headers: { 'x-service-client': 'app' } },
  )
  assert.deepEqual([answer.status, answer.headers.get('x-service-cache')], [403, null])
})

test('a large answer that streams is not cached', async () => {
  assert.equal((await read(here, 'large')).outcome, 'miss')
  const again = await read(here, 'large')
  assert.deepEqual([again.outcome, again.rows.length], ['miss', 900])
})

test('SQL, functions and transactions are never cached', async () => {
  const asked = [
    () => admin.post('/gateway/query', { query: 'select 1 as one' }),
    () => here.get('/rpc/now'),
    () =>
      here.post('/gateway/transaction', {
        operations: [{ id: 'a', kind: 'fetch', payload: { table_name: 'unrelated' } }],
      }),
  ]
  for (const ask of asked) {
    await ask()
    assert.equal((await ask()).headers.get('x-service-cache'), null)
  }
})
