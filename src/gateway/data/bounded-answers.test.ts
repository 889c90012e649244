import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { group } from '#gateway/grouping/grouped-fetch.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { type Answer, testService } from '#test/harness.ts'

const MOST = 1_048_576
const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
await sql(`
  create table filler (id int primary key, text text, mark text);
  insert into filler select n, repeat('x', 20000), 'old' from generate_series(1, 200) n;
  create table made (id int primary key, text text default repeat('x', 20000));
  create table bare (id int generated always as identity primary key);
  create table a (id int primary key, b_id int); create table b (id int primary key, a_id int references a);
  alter table a add foreign key (b_id) references b;
  create table person (id int primary key, mark text);
  create table letter (id int primary key, person_id int references person, stored json default E'{"a":\\n [1.10,\\n 2]}');
  create domain stored_json as json; create type stored_pair as (stored json, text text);
  create table shelf (id int primary key, person_id int references person, domains stored_json[], pair stored_pair, pairs stored_pair[]);
  create table stamp (id int primary key, letter_id int references letter);
  insert into person select n, 'old' from generate_series(1, 10) n;
  insert into letter select n, 1 + n % 10 from generate_series(1, 40) n;
  insert into shelf select 1, 3, array[j::stored_json], p, array[p]
    from (select j, row(j, 't')::stored_pair p from (select ('[1.10,' || repeat(E'\\n', 300) || '2]')::json j) x) y;
  insert into stamp select n, 1 + n % 40 from generate_series(1, 150) n;
  create function fill() returns setof filler language sql as $$ select * from filler $$;
  create function change() returns setof filler language sql as $$ update filler set mark = 'called' returning * $$`)
const t = await testService({
  config: {
    limits: { answer: MOST, insert_rows: 1_000 },
    gateway: { max_rows: 200 },
    clients: { bounded: { url: database.url, max_connections: 2 } },
  },
})
after(async () => {
  await t.stop()
  await database.drop()
})
const key = await t.key(['*'], { client_name: 'bounded' })
const headers = { 'x-service-client': 'bounded' }
const post = (path: string, body: object) => key.post(path, body, { headers })

const filler = { table_name: 'filler' }
const rows = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: from + index }))
const all = { ...filler, set: { mark: 'new' }, allow_unbounded: true }

/** Operations that buffer their response and exceed the limit. */
const COLLECTED: Readonly<Record<string, () => Promise<Answer>>> = {
  'rows with their count': () => post('/gateway/fetch', { ...filler, count: 'exact' }),
  'rows in groups': () => post('/gateway/fetch', { ...filler, group_by: 'mark' }),
  'rows of a function': () => post('/gateway/rpc', { function: 'fill' }),
  'rows of a function with their count': () => post('/gateway/rpc', { function: 'fill', count: 'exact' }),
  'rows of a function that writes': () => post('/gateway/rpc', { function: 'change' }),
  'rows of SQL': () => post('/gateway/query', { query: 'select * from filler' }),
  'rows of SQL that writes': () =>
    post('/gateway/query', { query: `update filler set mark = 'queried' returning *` }),
  'rows of an insert': () => post('/gateway/insert', { table_name: 'made', insert_body: rows(1, 100) }),
  'rows of an update': () => post('/gateway/update', all),
  'rows of a delete': () => post('/gateway/delete', { ...filler, allow_unbounded: true }),
  'rows of a transaction': () =>
    post('/gateway/transaction', { operations: [{ id: 'a', kind: 'fetch', payload: filler }] }),
  'rows of a transaction that writes': () =>
    post('/gateway/transaction', { operations: [{ id: 'a', kind: 'update', payload: all }] }),
}

for (const [name, ask] of Object.entries(COLLECTED))
  test(`${name} above limits.answer get 413 and have no effect`, async () => {
    const { status, body } = await ask()
    assert.deepEqual([status, body.code], [413, 'result_too_large'])
    assert.equal(body.data?.details?.maximum_bytes, MOST)
    assert.match(body.message, /1048576 bytes/)
    const [state] = await sql(`select (select count(*)::int from filler where mark = 'old') as old,
      (select count(*)::int from made) as made`)
    assert.deepEqual(state, { old: 200, made: 0 })
    assert.equal(
      (await post('/gateway/fetch', { ...filler, limit: 1 })).status,
      200,
      'a connection was not released',
    )
  })

test('the same operations succeed below the limit or without rows', async () => {
  const few = await post('/gateway/fetch', { ...filler, count: 'exact', limit: 20 })
  assert.deepEqual([few.status, few.body.count], [200, 200])
  const made = await post('/gateway/insert', { table_name: 'made', insert_body: rows(1, 20) })
  assert.deepEqual([made.status, made.body.affected_rows], [200, 20])
  const silent = await post('/gateway/update', { ...all, head: true })
  assert.deepEqual([silent.status, silent.body.affected_rows], [200, 200])
  const back = await post('/gateway/update', { ...all, set: { mark: 'old' }, columns: ['id'] })
  assert.deepEqual([back.status, back.body.data.length], [200, 200])
  const twice = await post('/gateway/insert', { table_name: 'made', insert_body: rows(20, 2) })
  assert.equal(twice.status, 409, 'a failure at the commit of a write is reported')
  assert.deepEqual(await sql('delete from made returning 1 as gone').then((gone) => gone.length), 20)
})

test('an insert has at most limits.insert_rows rows, even empty ones', async () => {
  const many = await post('/gateway/insert', {
    table_name: 'bare',
    insert_body: Array.from({ length: 1_001 }, () => ({})),
  })
  assert.deepEqual([many.status, many.body.code], [413, 'too_many_rows'])
  assert.deepEqual(many.body.data.details, { field: 'insert_body', maximum: 1_000, given: 1_001 })
  const enough = await post('/gateway/insert', {
    table_name: 'bare',
    insert_body: Array.from({ length: 1_000 }, () => ({})),
  })
  assert.deepEqual([enough.status, enough.body.affected_rows], [200, 1_000])
})

/** Nested relations: from a to b, back to a, and so on. */
const nested = (depth: number, table: 'a' | 'b' = 'a'): string => {
  if (depth === 0) return 'id'
  const [other, constraint] =
    table === 'a' ? (['b', 'a_b_id_fkey'] as const) : (['a', 'b_a_id_fkey'] as const)
  return `x:${other}!${constraint}(${nested(depth - 1, other)})`
}

test('relations can be nested four levels deep', async () => {
  const four = await post('/gateway/fetch', { table_name: 'a', columns: ['id', nested(4)] })
  assert.equal(four.status, 200, four.text)
  const five = await post('/gateway/fetch', { table_name: 'a', columns: ['id', nested(5)] })
  assert.deepEqual([five.status, five.body.code], [400, 'too_deep'])
})

const letters = { table_name: 'person', columns: ['id', 'letter(id,stamp(id))'] }

test('rows and all rows of their relations share one limit', async () => {
  const fits = await post('/gateway/fetch', letters)
  assert.equal(fits.status, 200, fits.text)
  const people: { letter: { stamp: object[] }[] }[] = fits.body.data
  const inside = people.flatMap(({ letter }) => letter)
  assert.deepEqual([people.length, inside.length, inside.flatMap(({ stamp }) => stamp).length], [10, 40, 150])
  await sql('insert into stamp values (151, 1)')
  const tooMany = await post('/gateway/fetch', letters)
  assert.deepEqual([tooMany.status, tooMany.body.code], [413, 'result_too_large'])
  assert.deepEqual(tooMany.body.data.details, { maximum: 200 })
  const written = await post('/gateway/update', { ...letters, set: { mark: 'new' }, allow_unbounded: true })
  assert.equal(written.status, 413)
  assert.deepEqual(await sql(`select count(*)::int as old from person where mark = 'old'`), [{ old: 10 }])
  assert.equal((await post('/gateway/fetch', { ...letters, limit: 9 })).status, 200)
})

test('a row whose relation exceeds the limit is rejected', async () => {
  await sql('insert into letter select n, 1 from generate_series(1000, 1300) n')
  const answer = await post('/gateway/fetch', {
    table_name: 'person',
    columns: ['letter(id)'],
    conditions: [{ eq_column: 'id', eq_value: 1 }],
  })
  assert.deepEqual([answer.status, answer.body.code], [413, 'result_too_large'])
  await sql('delete from letter where id >= 1000')
})

test('line breaks in stored JSON of a relation do not count as rows, and digits are preserved', async () => {
  const answer = await post('/gateway/fetch', {
    table_name: 'person',
    columns: ['letter(stored)'],
    conditions: [{ eq_column: 'id', eq_value: 2 }],
  })
  assert.equal(answer.status, 200)
  assert.deepEqual(answer.body.data[0].letter[0], { stored: { a: [1.1, 2] } })
  assert.match(answer.text, /1\.10/)
  const all = await post('/gateway/fetch', {
    table_name: 'person',
    columns: ['a:letter(stored)', 'b:letter(stored)'],
  })
  assert.equal(all.status, 200, 'ten and twice forty')
})

test('line breaks in JSON inside custom types do not count as rows', async () => {
  const stored = [1.1, 2]
  const pair = { stored, text: 't' }
  const whole = { domains: [stored], pair, pairs: [pair] }
  for (const [column, value] of Object.entries(whole)) {
    const answer = await post('/gateway/fetch', {
      table_name: 'person',
      columns: [`shelf(${column})`],
      conditions: [{ eq_column: 'id', eq_value: 3 }],
    })
    assert.equal(answer.status, 200, `${column}: ${answer.text}`)
    assert.deepEqual(answer.body.data, [{ shelf: [{ [column]: value }] }])
  }
})

test('grouping many rows does not block other requests', async () => {
  const many = Array.from(
    { length: 30_000 },
    (_, id) => `{"id":${id},"text":"${'x'.repeat(50)}","n":${id}.5}`,
  )
  const json = [Buffer.from(`[${many.join(',')}]`)]
  const facts = () => ({ rows: many.length, hasMore: false, total: undefined })
  let turns = 0
  let isOver = false
  const turn = () => {
    turns++
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const grouping = { groupBy: 'id', column: 'n', strategy: undefined, granularity: undefined, dedup: false }
  const began = performance.now()
  const { postProcessing } = await group({ json, facts }, grouping, new Set(), 33_554_432)
  isOver = true
  assert.ok(postProcessing.length > 1_000_000)
  // Other requests ran at least once per 100 ms.
  assert.ok(turns > 5 && turns > (performance.now() - began) / 100, `${turns} turns`)
})
