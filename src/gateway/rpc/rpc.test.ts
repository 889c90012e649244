import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import pg from 'pg'
import { OWN_LOCKS } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const t = await testService({ config: { limits: { rows: 20 }, gateway: { max_rows: 50 } } })
const who = await t.key(['gateway.rpc.execute'])
const observer = new pg.Client({ connectionString: t.clientUrl })

before(async () => {
  await observer.connect()
  await observer.query(`
    create schema sales;
    create type place as (x int, label text);
    create table person (id int primary key, name text, tags text[], born timestamptz, money numeric);
    insert into person select n, 'Person ' || n, array['a', 'b"c'], '2026-01-02 03:04:05+00', n + 0.10 from generate_series(1, 30) n;
    create table tally (n int);
    create function add(a int, b int default 10) returns int language sql immutable as 'select a + b';
    create function sales.total(factor numeric) returns numeric language sql as 'select factor * 2';
    create function people(low int default 0) returns setof person language sql stable as 'select * from person where id >= low';
    create function one_person(id int) returns person language sql stable as 'select p from person p where p.id = one_person.id';
    create function pairs(n int) returns table (i int, "odd name" text) language sql as 'select g, ''x'' || g from generate_series(1, n) g';
    create function numbers(n int) returns setof int language sql as 'select generate_series(1, n)';
    create function halves(n int, out half int, out rest int) language sql as 'select n / 2, n % 2';
    create function single(n int, out answer int) language sql as 'select n';
    create function count_up() returns int language sql as 'insert into tally values (1); select count(*)::int from tally';
    create function count_rows(n int) returns setof int language sql as 'insert into tally values (2); select generate_series(1, n)';
    create function nothing() returns void language sql as 'insert into tally values (3)';
    create function kind(v int) returns text language sql as 'select ''int''';
    create function kind(v text, w int) returns text language sql as 'select ''text''';
    create function twice(v int) returns text language sql as 'select ''i''';
    create function twice(v text) returns text language sql as 'select ''t''';
    create function typed(j jsonb, a int[], p place, d date, b boolean, t text) returns jsonb language sql as
      'select jsonb_build_object(''j'', j, ''a'', a, ''p'', p, ''d'', d, ''b'', b, ''t'', t)';
    create function boxes(b box[]) returns int language sql as 'select cardinality(b)';
    create function glue(sep text, variadic parts text[]) returns text language sql as 'select array_to_string(parts, sep)';
    create function "Odd ""Name"("Arg; drop table person" int) returns int language sql as 'select 7';
    create function raises(code text) returns void language plpgsql as 'begin raise exception ''told %'', code using errcode = code; end';
    create function dirty() returns void language plpgsql as $$ begin
      perform set_config('search_path', 'nowhere', false); perform pg_advisory_lock(77); create temp table person (id int);
      perform set_config('TimeZone', 'Asia/Tokyo', false); end $$;
    create function seen() returns jsonb language sql as $$ select jsonb_build_object('path', current_setting('search_path'),
      'zone', current_setting('TimeZone'), 'rows', (select count(*) from public.person), 'user', current_user = session_user) $$;
    create function unnamed(int) returns int language sql as 'select $1';
    create function anything(v anyelement) returns anyelement language sql as 'select v';
    create function trigger_it() returns trigger language plpgsql as 'begin return new; end';
    create function slow() returns void language sql as 'select pg_sleep(100)';
    create function hidden() returns int language sql as 'select 1';
    create function "select"("limit" int) returns int language sql as 'select "limit"'`)
})
test.after(() => observer.end())

const rpc = (body: object) => who.post('/gateway/rpc', body)
const tallied = async () => Number((await observer.query('select count(*) from tally')).rows[0]?.count)

test('a scalar result is one row with one member; arguments are named, and defaults may be omitted', async () => {
  const answer = await rpc({ function: 'add', args: { b: 2, a: 40 } })
  assert.deepEqual([answer.status, answer.body], [200, { data: [{ add: 42 }] }], answer.text)
  assert.deepEqual((await rpc({ function_name: 'add', args: { a: 1 } })).body.data, [{ add: 11 }])
  assert.deepEqual((await rpc({ function: 'single', args: { n: 5 } })).body.data, [{ answer: 5 }])
  assert.match(
    (await rpc({ function: 'total', schema: 'sales', args: { factor: 1.1 } })).text,
    /"total":2\.2/,
  )
  assert.deepEqual((await rpc({ function: 'sales.total', args: { factor: 2 } })).body.data, [{ total: 4 }])
})

test('an array of boxes, whose values no comma separates, is an argument', async () => {
  const answer = await rpc({ function: 'boxes', args: { b: ['(1,1),(0,0)', '(3,3),(2,2)'] } })
  assert.deepEqual(answer.body.data, [{ boxes: 2 }], answer.text)
})

test('results support columns, filters, sorting, limit and count', async () => {
  const answer = await rpc({
    function: 'people',
    args: { low: 5 },
    select: ['id', 'label:name', 'tags', 'born', 'money'],
    filters: [{ column: 'id', operator: 'lte', value: 20 }],
    order: { column: 'id', ascending: false },
    limit: 2,
    offset: 1,
    count: 'exact',
  })
  assert.equal(answer.body.count, 16, answer.text)
  assert.deepEqual(answer.body.data, [
    { id: 19, label: 'Person 19', tags: ['a', 'b"c'], born: '2026-01-02T03:04:05Z', money: 19.1 },
    { id: 18, label: 'Person 18', tags: ['a', 'b"c'], born: '2026-01-02T03:04:05Z', money: 18.1 },
  ])
  assert.match(answer.text, /"money":19\.10/)
  const open = await rpc({ function: 'people' })
  assert.deepEqual([open.body.data.length, open.body.has_more, open.body.count], [20, true, undefined])
  const head = await rpc({ function: 'people', head: true, count: 'exact' })
  assert.deepEqual(head.body, { data: [], count: 30 })
  const beyond = await rpc({ function: 'people', count: 'exact', offset: 99 })
  assert.deepEqual(beyond.body, { data: [], count: 30 })
  assert.equal((await rpc({ function: 'people', limit: 51 })).body.code, 'limit_too_large')
  assert.equal((await rpc({ function: 'people', select: 'nowhere' })).body.code, 'unknown_column')
  assert.equal(
    (await rpc({ function: 'people', filters: [{ column: 'id', operator: 'pg_sleep', value: 1 }] })).status,
    400,
  )
})

test('every kind of result is returned as rows', async () => {
  assert.deepEqual((await rpc({ function: 'numbers', args: { n: 3 } })).body.data, [
    { numbers: 1 },
    { numbers: 2 },
    { numbers: 3 },
  ])
  assert.deepEqual((await rpc({ function: 'halves', args: { n: 7 } })).body.data, [{ half: 3, rest: 1 }])
  assert.deepEqual((await rpc({ function: 'pairs', args: { n: 1 } })).body.data, [{ i: 1, 'odd name': 'x1' }])
  assert.equal((await rpc({ function: 'one_person', args: { id: 3 } })).body.data[0].name, 'Person 3')
  const before = await tallied()
  const silent = await rpc({ function: 'nothing' })
  assert.deepEqual([silent.status, silent.body, await tallied()], [200, { data: [] }, before + 1])
})

test('arguments accept any value of their type, and an invalid value names its argument', async () => {
  const args = { j: 'text', a: [1, null, 3], p: { x: 1, label: `'; --` }, d: '2026-02-03', b: true, t: '007' }
  assert.deepEqual((await rpc({ function: 'typed', args })).body.data[0].typed, args)
  assert.deepEqual((await rpc({ function: 'glue', args: { sep: '-', parts: ['a', 'b'] } })).body.data, [
    { glue: 'a-b' },
  ])
  const invalid = await rpc({ function: 'add', args: { a: 'x' } })
  assert.deepEqual(
    [invalid.status, invalid.body.code, invalid.body.data.details.column],
    [422, 'invalid_value', 'a'],
  )
  const large = await rpc({ function: 'add', args: { a: 2147483648 } })
  assert.equal(large.status, 422)
})

test('an overload is selected by its argument names', async () => {
  assert.deepEqual((await rpc({ function: 'kind', args: { v: 1 } })).body.data, [{ kind: 'int' }])
  assert.deepEqual((await rpc({ function: 'kind', args: { v: 'x', w: 1 } })).body.data, [{ kind: 'text' }])
  for (const [name, args] of [
    ['twice', { v: 1 }],
    ['add', { a: 1, c: 2 }],
    ['add', { b: 1 }],
    ['kind', {}],
  ] as const) {
    const answer = await rpc({ function: name, args })
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_arguments'], answer.text)
  }
})

test('names are always quoted', async () => {
  const odd = await rpc({ function: 'Odd "Name', args: { 'Arg; drop table person': 1 } })
  assert.deepEqual([odd.status, odd.body.data], [200, [{ 'Odd "Name': 7 }]], odd.text)
  for (const name of [
    'add(1,2); drop table person; --',
    '"',
    'person',
    'a.b.c',
    'add"',
    '\u00e9'.repeat(99),
  ]) {
    const answer = await rpc({ function: name, args: {} })
    assert.ok([400, 404].includes(answer.status), answer.text)
  }
  assert.equal((await rpc({ function: 'add', args: { 'a" => 1); drop table person; --': 1 } })).status, 400)
})

test('system functions and invalid names are not found', async () => {
  for (const [schema, name] of [
    ['pg_catalog', 'pg_sleep'],
    ['pg_catalog', 'set_config'],
    ['public', 'pg_sleep'],
    ['information_schema', '_pg_truetypid'],
    ['public', 'unnamed'],
    ['public', 'anything'],
    ['public', 'trigger_it'],
    ['public', 'nowhere'],
    ['nowhere', 'add'],
  ]) {
    const answer = await rpc({ function: name, schema, args: {} })
    assert.deepEqual([answer.status, answer.body.code], [404, 'function_not_found'], `${schema}.${name}`)
  }
})

test('a call with a count runs the function once, and a failure rolls it back', async () => {
  const before = await tallied()
  const counted = await rpc({ function: 'count_rows', args: { n: 30 }, count: 'exact', limit: 5 })
  assert.deepEqual([counted.body.count, counted.body.data.length, await tallied()], [30, 5, before + 1])
  const refused = await rpc({ function: 'raises', args: { code: 'P0001' } })
  assert.deepEqual([refused.status, refused.body.error], [400, 'told P0001'])
  assert.equal((await rpc({ function: 'raises', args: { code: '23505' } })).status, 409)
})

test('GET calls a function with text arguments and filters, and rejects writes', async () => {
  assert.deepEqual((await who.get('/rpc/add?a=1&b=2')).body, { data: [{ add: 3 }] })
  const answer = await who.get(
    '/rpc/people?low=3&id=lt.6&name=not.is.null&select=id&order=id.desc&count=exact&limit=2',
  )
  assert.deepEqual(answer.body, { data: [{ id: 5 }, { id: 4 }], count: 3 }, answer.text)
  const typed = await who.get(
    `/rpc/typed?j=${encodeURIComponent('{"k":1}')}&a={1,2}&p=(1,x)&d=2026-01-01&b=true&t=5`,
  )
  assert.deepEqual(typed.body.data[0].typed, {
    j: { k: 1 },
    a: [1, 2],
    p: { x: 1, label: 'x' },
    d: '2026-01-01',
    b: true,
    t: '5',
  })
  const before = await tallied()
  const writes = await who.get('/rpc/count_up')
  assert.deepEqual([writes.status, writes.body.code, await tallied()], [403, 'read_only', before])
  assert.equal((await who.get('/rpc/add?a=1&a=2')).status, 400)
})

test('POST /rpc/{name} accepts the arguments as body, or a body with args', async () => {
  assert.deepEqual((await who.post('/rpc/add', { a: 1, b: 1 })).body.data, [{ add: 2 }])
  assert.deepEqual((await who.post('/rpc/add', { args: { a: 1, b: 1 }, limit: 1 })).body.data, [{ add: 2 }])
  assert.equal((await who.post('/rpc/people', { limit: 2 })).body.data.length, 2)
  assert.equal((await who.post('/rpc/count_up')).status, 200)
  assert.deepEqual((await who.post('/rpc/sales.total', { factor: 1 })).body.data, [{ total: 2 }])
  assert.deepEqual((await who.post('/rpc/select', { args: { limit: 4 } })).body.data, [{ select: 4 }])
})

test('session state left by a function does not affect other callers', async () => {
  const normal = { path: '"$user", public', zone: 'UTC', rows: 30, user: true }
  await Promise.all(Array.from({ length: 8 }, () => rpc({ function: 'dirty' })))
  for (let round = 0; round < 8; round++)
    assert.deepEqual((await rpc({ function: 'seen' })).body.data[0].seen, normal)
  const locks = await observer.query(
    `select count(*)::int as held from ${OWN_LOCKS} where locktype = 'advisory' and objid = 77`,
  )
  assert.equal(locks.rows[0]?.held, 0)
})

test('calling functions requires the right', async () => {
  for (const rights of [['gateway.read', 'gateway.write'], ['*.read'], ['gateway.query']]) {
    const answer = await (await t.key(rights)).post('/gateway/rpc', { function: 'add', args: { a: 1 } })
    assert.deepEqual([answer.status, answer.body.code], [403, 'insufficient_rights'])
  }
  assert.equal((await t.anon.get('/rpc/add?a=1', { headers: { 'x-service-client': 'default' } })).status, 401)
})
