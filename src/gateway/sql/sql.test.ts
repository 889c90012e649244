import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Actor, actor, testService } from '#test/harness.ts'

const t = await testService({
  config: { gateway: { max_rows: 1_000 } },
})
const full = await t.key(['gateway.query', 'gateway.read'])
const reader = await t.key(['gateway.query.read'])
const observer = new pg.Client({ connectionString: t.clientUrl })

before(async () => {
  await observer.connect()
  await observer.query(`
    create table item (id int primary key, word text);
    insert into item select n, 'word ' || n from generate_series(1, 50) n;
    create table other (id int unique deferrable initially deferred)`)
})
test.after(() => observer.end())

const sql = (who: Actor, query: string, more: object = {}) => who.post('/gateway/query', { query, ...more })
const count = async (where: string) =>
  Number((await observer.query(`select count(*) from item where ${where}`)).rows[0]?.count)

test('rows keep all digits, and meta describes the statement', async () => {
  const answer = await full.post('/query/sql', {
    driver: 'postgresql',
    query: `select id, word, 12345678901234567890.5::numeric as exact, now() is not null as ok, null as nothing from item where id < 3`,
  })
  assert.equal(answer.status, 200, answer.text)
  assert.match(answer.text, /"exact":12345678901234567890\.5,"ok":true,"nothing":null/)
  const { duration_ms, ...meta } = answer.body.meta
  assert.deepEqual(meta, {
    backend: 'postgresql',
    returned_row_count: 2,
    rows_affected: 0,
    statement_count: 1,
    columns: [
      { name: 'id', type: 'integer' },
      { name: 'word', type: 'text' },
      { name: 'exact', type: 'numeric' },
      { name: 'ok', type: 'boolean' },
      { name: 'nothing', type: 'text' },
    ],
  })
  assert.ok(Number.isInteger(duration_ms))
  assert.equal(answer.body.message, 'Query executed')
})

test('all aliases of route and driver work, and another driver is rejected', async () => {
  for (const driver of ['postgresql', 'postgres', 'athena'])
    assert.equal((await full.post('/gateway/sql', { driver, query: 'select 1 as one' })).body.data[0].one, 1)
  for (const driver of ['supabase', 'scylla', 'scylladb']) {
    const answer = await full.post('/query/sql', { driver, query: 'select 1' })
    assert.deepEqual([answer.status, answer.body.code], [400, 'driver_mismatch'])
  }
  assert.equal((await full.post('/query/sql', { driver: 'oracle', query: 'select 1' })).status, 400)
  assert.equal((await full.post('/query/sql', { query: 'select 1' })).status, 400)
})

test('parameters are bound, and allow only one statement', async () => {
  const text = `select $1::int + 1 as n, $2::text as t, $3::jsonb as j, $4::int[] as a, $5::bool as b, $6::text is null as missing`
  const fine = await sql(full, text, {
    params: [41, `'; drop table item; --`, { a: [1] }, [1, 2], true, null],
  })
  assert.deepEqual(fine.body.data, [
    { n: 42, t: `'; drop table item; --`, j: { a: [1] }, a: [1, 2], b: true, missing: true },
  ])
  const two = await sql(full, 'select 1; select 2', { params: [] })
  assert.deepEqual([two.status, two.body.code], [400, 'invalid_sql'])
  const few = await sql(full, 'select $1, $2', { params: ['a'] })
  assert.deepEqual([few.status, few.body.code, few.body.data.details.field], [400, 'invalid_sql', 'params'])
  const invalid = await sql(full, 'select $1::int as n', { params: ['x'] })
  assert.deepEqual([invalid.status, invalid.body.code], [422, 'invalid_value'])
})

test('columns are named with their types, and those that the database declares without', async () => {
  const types = ['"char"', 'bit', 'bytea', 'character', 'character varying', 'date', 'daterange', 'double precision', 'inet', 'int4range', 'interval', 'jsonb', 'money', 'oid', 'point', 'real', 'regclass', 'smallint', 'time with time zone', 'timestamp with time zone', 'timestamp without time zone', 'tsvector', 'uuid', 'xml'] // biome-ignore format: a list
  const all = types.flatMap((type) => [type, `${type}[]`])
  const { body } = await sql(full, `select ${all.map((type, index) => `null::${type} as c${index}`)}`)
  assert.deepEqual(
    body.meta.columns.map(({ type }: { type: string }) => type),
    all,
  )
  await observer.query(`create type mood as enum ('good')`)
  const own = await sql(full, `select 'good'::mood as a, 1 as a`)
  assert.deepEqual(own.body.meta.columns, [
    { name: 'a', type: null },
    { name: 'a', type: 'integer' },
  ])
  assert.deepEqual((await sql(full, `update item set word = word where false`)).body.meta.columns, [])
})

test('arrays are written as JSON like the database does', async () => {
  for (const [array, as] of [
    [`'{1,NULL,-3}'`, 'int[]'],
    [`'{{1,2},{3,4}}'`, 'int8[]'],
    [`'[0:1]={5,6}'`, 'int[]'],
    [`'{}'`, 'text[]'],
    [`array['a"b', 'c\\d', '{e,f}', 'NULL', null, '', ' g ', E'\\n', 'é']`, 'text[]'],
    [`array[true, false, null]`, 'bool[]'],
    [`array[1.50, 12345678901234567890.1]`, 'numeric[]'],
    [`array['{"a": [1, "}"]}', null]`, 'jsonb[]'],
    [`array['2026-01-02 03:04:05.5', 'infinity']`, 'timestamp[]'],
    [`array['2026-01-02', 'infinity']`, 'date[]'],
  ]) {
    const { text, body } = await sql(
      full,
      `select (${array})::${as} as a, to_json((${array})::${as}) as b, 'after' as c`,
    )
    assert.deepEqual(body.data[0].a, body.data[0].b, text)
    assert.equal(body.data[0].c, 'after')
  }
  const { body } = await sql(
    full,
    `select array['2026-01-02 03:04:05+00'::timestamptz] as a, array['NaN', '1.5']::float8[] as f, null::int[] as n`,
  )
  assert.deepEqual(body.data, [{ a: ['2026-01-02T03:04:05Z'], f: ['NaN', 1.5], n: null }])
})

test('several statements are atomic and return the rows of the last', async () => {
  const fine = await sql(
    full,
    `insert into item values (100, 'a'), (101, 'b'); update item set word = 'c' where id = 100; select word from item where id = 100`,
  )
  assert.deepEqual(fine.body.data, [{ word: 'c' }])
  assert.deepEqual([fine.body.meta.statement_count, fine.body.meta.rows_affected], [3, 3])
  const broken = await sql(full, `insert into item values (200, 'a'); select 1 / 0`)
  assert.equal(broken.status, 422)
  assert.equal(await count('id = 200'), 0)
  // A failure at COMMIT is reported, and the connection stays usable.
  for (let round = 0; round < 20; round++) {
    const late = await sql(full, 'insert into other values (1), (1)')
    assert.deepEqual([late.status, late.body.code], [409, 'unique_violation'])
    assert.deepEqual((await sql(full, `select ${round} as n`)).body.data, [{ n: round }])
  }
  const open = await sql(full, `begin; insert into item values (201, 'a')`)
  assert.deepEqual([open.status, open.body.code], [400, 'invalid_sql'])
  assert.equal(await count('id = 201'), 0)
  const closed = await sql(
    full,
    `begin; insert into item values (202, 'a'); commit; delete from item where id > 99`,
  )
  assert.deepEqual([closed.status, closed.body.data], [200, []])
})

test("invalid SQL gets the database's message and position", async () => {
  const wrong = await sql(full, 'select 1\nfrom item\nwhere foo = 1')
  assert.deepEqual([wrong.status, wrong.body.code], [400, 'unknown_column'])
  assert.match(wrong.body.error, /column "foo" does not exist/)
  assert.deepEqual(wrong.body.data.details, { sqlstate: '42703', position: 26, line: 3 })
  const third = await sql(full, "select '😀;';\n-- ;\nselect 1;\nselect '😀', foo")
  assert.deepEqual(third.body.data.details, { sqlstate: '42703', position: 41, line: 4 })
  for (const [query, status, code] of [
    ['selec 1', 400, 'invalid_sql'],
    ['select * from nowhere', 404, 'table_not_found'],
    ['select nothing(1)', 400, 'invalid_sql'],
    ['', 400, 'validation_error'],
    ['  -- nothing', 400, 'invalid_sql'],
    ['select 1; vacuum', 400, 'invalid_sql'],
    ['fetch next from nothing', 400, 'invalid_sql'],
    ["do $$ begin raise exception 'no' using errcode = 'P0001'; end $$", 400, 'invalid_sql'],
    ["insert into item values (1, 'x')", 409, 'unique_violation'],
    ['copy item from stdin', 400, 'not_supported'],
    ['copy item to stdout', 400, 'not_supported'],
    ["copy item to '/tmp/file'", 403, 'permission_denied'],
    ['select pg_read_file($$/etc/passwd$$)', 403, 'permission_denied'],
  ] as const) {
    const answer = await sql(full, query)
    assert.deepEqual([answer.status, answer.body.code], [status, code], `${query}: ${answer.text}`)
    if (query.length > 9) assert.ok(!answer.text.includes(query), 'the response repeats the SQL text')
  }
  assert.equal((await sql(full, 'vacuum item')).status, 200)
})

test('a result above the limit is rejected, and its statement is rolled back', async () => {
  const began = performance.now()
  const endless = await sql(full, 'select generate_series(1, 1000000000) as n, repeat($$x$$, 100)')
  assert.deepEqual([endless.status, endless.body.code], [413, 'result_too_large'])
  assert.ok(performance.now() - began < 50_000)
  const exact = await sql(full, 'select n from generate_series(1, 1000) n')
  assert.equal(exact.body.data.length, 1_000)
  const written = await sql(
    full,
    `insert into item select n, 'x' from generate_series(1000, 2000) n returning id`,
  )
  assert.equal(written.status, 413)
  await sleep(200)
  assert.equal(await count('id >= 1000'), 0)
  const wide = await sql(full, `select repeat('x', 1000000) as x from generate_series(1, 200)`)
  assert.deepEqual([wide.status, wide.body.code], [413, 'result_too_large'])
})

test('the right to read allows one read-only statement', async () => {
  for (const query of [
    'select count(*) as n from item',
    '/* x */ (select 1 as n)',
    'with a as (select 1 as n) select * from a',
    'values (1)',
    'table item',
    'explain analyze select * from item',
    'show timezone',
  ])
    assert.equal((await sql(reader, query)).status, 200, query)
  for (const query of [
    'begin',
    'commit',
    'rollback',
    'set role none',
    'reset all',
    'copy item to stdout',
    'do $$ begin end $$',
    'call x()',
    'insert into item values (999)',
    'prepare p as select 1',
    'listen x',
    'lock item',
    'discard all',
    'vacuum',
    `with gone as (delete from item returning id) select * from gone`,
    'select * into taken from item',
    'explain analyze delete from item',
    'create table x (id int)',
  ]) {
    const answer = await sql(reader, query)
    assert.deepEqual([answer.status, answer.body.code], [403, 'read_only'], `${query}: ${answer.text}`)
  }
  for (const query of ['select 1; commit; delete from item', 'select 1; select 2']) {
    const answer = await sql(reader, query)
    assert.equal(answer.status, 400, `${query}: ${answer.text}`)
  }
  const lifted = await sql(reader, `select set_config('transaction_read_only', 'off', true)`)
  assert.deepEqual([lifted.status, lifted.body.code], [403, 'function_not_allowed'])
  assert.equal(await count('true'), 50)
})

test('table rights do not include SQL, and SQL always requires a key', async () => {
  for (const rights of [
    ['*.read'],
    ['*.write', '*.delete'],
    ['gateway.read', 'gateway.write'],
    ['item.*'],
    ['gateway.rpc.execute'],
  ]) {
    const answer = await sql(await t.key(rights), 'select 1')
    assert.deepEqual([answer.status, answer.body.code], [403, 'insufficient_rights'], rights.join())
  }
  for (const rights of [['*'], ['gateway.*'], ['gateway.query.*']])
    assert.equal((await sql(await t.key(rights), 'select 1')).status, 200, rights.join())
  const anonymous = actor(t.url, { 'x-service-client': 'default' })
  assert.equal((await sql(anonymous, 'select 1')).status, 401)
  const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'default' })
  assert.equal((await sql(admin, 'select 1')).status, 200)
})

test('the logging client requires the right and allows only reads', async () => {
  const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'logging' })
  assert.equal((await sql(admin, 'select count(*) from database_audit_log')).status, 200)
  const written = await sql(admin, 'delete from database_audit_log')
  assert.deepEqual([written.status, written.body.code], [403, 'read_only'])
  const everyClient = await t.key(['*'], { client_name: null })
  const unbound = actor(t.url, { apikey: everyClient.apiKey, 'x-service-client': 'logging' })
  assert.equal((await sql(unbound, 'select 1')).status, 403)
})

test('a frozen client allows reads, and rejects writes with client_frozen', async () => {
  const made = await t.admin.post('/admin/clients', {
    client_name: 'cold',
    driver: 'postgresql',
    url: t.clientUrl,
  })
  assert.equal(made.status, 201, made.text)
  await t.admin.send('PUT', '/admin/clients/cold/freeze', { body: { is_frozen: true } })
  const key = await t.key(['gateway.query', 'gateway.rpc.execute'], { client_name: 'cold' })
  const cold = actor(t.url, { apikey: key.apiKey, 'x-service-client': 'cold' })
  assert.equal((await sql(cold, 'select count(*) from item')).status, 200)
  await sql(full, `create function wipe() returns void language sql as 'delete from item'`)
  for (const refused of [await sql(cold, 'delete from item'), await cold.post('/rpc/wipe')])
    assert.deepEqual([refused.status, refused.body.code], [403, 'client_frozen'], refused.text)
  assert.equal(await count('true'), 50)
})
