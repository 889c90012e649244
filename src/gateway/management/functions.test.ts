import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['management.functions.*', 'gateway.rpc.execute', 'gateway.write'])
const emitted: (readonly [string, unknown])[] = []
t.service.kernel.events.subscribe((name, data) => void emitted.push([name, data]))
const sql = (text: string) => withClient(t.clientUrl, async (client) => (await client.query(text)).rows)

const upsert = (ddl: string) => key.send('PUT', '/management/functions', { body: { ddl } })
const drop = (function_name: string, arg_types: readonly string[], schema_name = 'public') =>
  key.send('DELETE', '/management/functions', { body: { schema_name, function_name, arg_types } })

async function audited(object: string) {
  const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'logging' })
  const read = async (table_name: string) => {
    const body = {
      table_name,
      conditions: [{ eq_column: 'object_name', eq_value: object }],
      sort_by: { field: 'id' },
    }
    return (await admin.post('/gateway/fetch', body)).body.data
  }
  return { changes: await read('database_audit_log'), definitions: await read('function_ddl_audit_log') }
}

test('a function is created, called, replaced, listed and dropped, with its definitions in the audit log', async () => {
  const ddl = (factor: number) =>
    `create or replace function scaled(value int, "by" numeric default ${factor}) returns numeric language sql stable return value * "by"`
  const made = await upsert(ddl(2))
  assert.equal(made.status, 200, made.text)
  const { definition, ...facts } = made.body.data
  assert.deepEqual(facts, {
    schema_name: 'public',
    function_name: 'scaled',
    signature: 'public.scaled(value integer, by numeric)',
    replaced: false,
  })
  assert.match(definition, /^CREATE OR REPLACE FUNCTION public\.scaled/)
  const call = async () => (await key.post('/rpc/scaled', { value: 21 })).body.data[0].scaled
  assert.equal(await call(), 42)
  const replaced = await key.post('/management/functions', { ddl: `${ddl(3)};` })
  assert.equal(replaced.body.data.replaced, true, replaced.text)
  assert.equal(await call(), 63)

  const listed = await key.get('/management/functions?name_like=sca%25&include_definition=true')
  assert.deepEqual(
    [
      listed.body.data.total,
      listed.body.data.functions[0].arg_types,
      listed.body.data.functions[0].volatility,
    ],
    [1, ['integer', 'numeric'], 'stable'],
  )
  assert.match(listed.body.data.functions[0].definition, /3/)

  const dropped = await drop('scaled', ['int', 'pg_catalog.numeric(10,2)'])
  assert.equal(dropped.status, 200, dropped.text)
  assert.equal(dropped.body.data.signature, 'public.scaled(value integer, by numeric)')
  assert.equal((await key.post('/rpc/scaled', { value: 1 })).status, 404)

  const told = emitted.filter(([name]) => name.startsWith('schema_function'))
  assert.deepEqual(
    told.map(([name]) => name),
    ['schema_function_upserted', 'schema_function_upserted', 'schema_function_dropped'],
  )
  const signature = 'public.scaled(value integer, by numeric)'
  assert.partialDeepStrictEqual(told[2]?.[1], { client: 'default', function: 'public.scaled', signature })

  const { changes, definitions } = await audited('scaled')
  const outcome = ({ operation, status, object_type }: Record<string, string>) => [
    operation,
    status,
    object_type,
  ]
  const expected = [
    ['upsert_function', 'succeeded', 'function'],
    ['upsert_function', 'succeeded', 'function'],
    ['drop_function', 'succeeded', 'function'],
  ]
  assert.deepEqual(changes.map(outcome), expected)
  assert.deepEqual(definitions.map(outcome), expected)
  const shown = definitions.map(
    ({ definition_before: before, definition_after: after }: Record<string, string>) => [
      /DEFAULT (\d)/.exec(before ?? '')?.[1],
      /DEFAULT (\d)/.exec(after ?? '')?.[1],
    ],
  )
  assert.deepEqual(shown, [[undefined, '2'], ['2', '3'], ['3', undefined]]) // biome-ignore format: a table
  assert.equal(definitions[2].function_signature, signature)
})

test('ddl that is not exactly one allowed function is refused, and nothing is changed', async () => {
  await sql(`create extension if not exists citext; create function mine() returns int language sql return 1`)
  const catalogue = () =>
    sql(`select (select md5(string_agg(p::text, ',' order by p.oid)) from pg_proc p) as functions,
      (select md5(string_agg(c::text, ',' order by c.oid)) from pg_class c where c.relname !~ '^pg_') as relations`)
  const before = await catalogue()
  const body = `returns int language sql as 'select 1'`
  for (const ddl of [
    ';',
    '--',
    'select 1',
    'drop table x',
    'create table x (a int)',
    `create procedure p() language sql as ''`,
    `create aggregate a(int) (sfunc = f, stype = int)`,
    `create function f() ${body}; drop function mine()`,
    `create function f() ${body}; create function g() ${body}`,
    `create function f() ${body}) x`,
    `do $$ begin end $$`,
    `create trigger f before insert on x execute function f()`,
    'alter function mine() security definer',
    `explain create function f() ${body}`,
    `create function f() returns int language c as 'x', 'y'`,
    `create function f() returns int language C as 'x'`,
    `create function f() returns int language 'c' as 'x'`,
    `create function f() returns int language internal as 'pg_sleep'`,
    `create function f() returns int language "Internal" as 'x'`,
    `create function f() returns int language plpython3u as ''`,
    `create function f() returns int language missing as ''`,
    `create function f() returns int as ''`,
    `create function f() language sql as 'select 1'`,
    `create function f() returns int language sql window as 'select 1'`,
    `create function f() returns int language sql support x as 'select 1'`,
    `create function f() returns int language sql transform for type int as 'select 1'`,
    `create function f() returns int language sql leakproof as 'select 1'`,
    `create function pg_catalog.f() ${body}`,
    `create function information_schema.f() ${body}`,
    `create function service.f() ${body}`,
    `create function pg_temp.f() ${body}`,
    `create function other.public.f() ${body}`,
    `create function missing.f() ${body}`,
    `create function "a b"() ${body}`,
    `create function "a""; drop table x; --"() ${body}`,
    `create function f(a missing) ${body}`,
    `create function f(a x.b%type) ${body}`,
    `create function f() returns int language sql as 'selec 1'`,
    `create function f() returns int language sql as 'select missing()'`,
    `create function f() returns int language plpgsql as 'begin x end'`,
    `create function f(a int default (select 1)) ${body}`,
    `create function f() returns int language sql return 'x'`,
    `create or replace function citextin(cstring) returns citext language sql as 'select null'`,
    `create or replace function mine() returns text language sql as 'select 1'`,
    `create function mine() ${body}`,
    `create function f() returns int language sql as '\\', '; drop function mine(); --'`,
    `create function f() ${body}\0`,
    `create function f(a int default 1${' + 1'.repeat(20_000)}) ${body}`,
    `create function f() returns int language sql return ${'('.repeat(20_000)}1${')'.repeat(20_000)}`,
    `create function f() returns int language sql begin atomic ${'select 1; '.repeat(10_500)} end`,
    `create function f() returns int language sql begin atomic drop function mine(); end`,
    `create function f() returns int language sql begin atomic select 1; end; drop function mine()`,
  ]) {
    // biome-ignore format: a table
    const answer = await upsert(ddl)
    assert.ok([400, 404, 409].includes(answer.status), `${ddl.slice(0, 200)}: ${answer.text}`)
  }
  assert.deepEqual(await catalogue(), before)
  assert.equal((await upsert('x'.repeat(200_000))).status, 400)
  const shown = await upsert('create function f() returns int language c as $$x$$')
  assert.deepEqual([shown.body.code, shown.body.error], ['invalid_function', 'Language c is not allowed'])
})

test('a drop names its types: text that is more than a type is refused, and dependent objects keep the function', async () => {
  await sql(`create function kept(int) returns int language sql return 1; create function kept(text[]) returns int language sql return 2;
    create table uses_it (a int default kept(1)); create procedure step(int) language sql as ''; create type "odd Type" as (a int);
    create function kept("odd Type") returns int language sql return 3`)
  for (const type of ['int) cascade; --', 'int, int', 'int; drop table uses_it', 'setof int', 'uses_it.a%type', '', "int'", '(select 1)', 'int as x', 'a.b.c.d', 'int from x', '1'])
    assert.equal((await drop('kept', [type])).status, 400, type) // biome-ignore format: a table
  const busy = await drop('kept', ['integer'])
  assert.deepEqual([busy.status, busy.body.code], [409, 'object_in_use'], busy.text)
  for (const [name, types] of [['kept', ['bigint']], ['kept', []], ['missing', ['int']], ['step', ['int']], ['kept', ['missing']]] as const)
    assert.equal((await drop(name, types)).status, 404, `${name}(${types})`) // biome-ignore format: a table
  assert.equal((await drop('pg_sleep', ['float8'], 'pg_catalog')).status, 400)
  assert.equal((await drop('citextin', ['cstring'])).status, 409)
  assert.equal((await drop('kept', ['text[]'])).status, 200)
  assert.equal((await drop('kept', ['public."odd Type"'])).status, 200)
  await sql('create function insensitive(citext) returns int language sql return 1')
  assert.equal((await drop('insensitive', ['citext'])).status, 200)
  assert.equal((await sql(`select from pg_proc where proname = 'kept'`)).length, 1)
})

test('functions that are replaced at the same time replace each other', async () => {
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      upsert(`create or replace function raced() returns int language sql return ${index}`),
    ),
  )
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  assert.equal(answers.filter(({ body }) => !body.data.replaced).length, 1)
})

test('nothing is changed or logged while the log of functions cannot be written', async () => {
  const rename = (from: string, to: string) =>
    withClient(t.loggingUrl, (client) => client.query(`alter table ${from} rename to ${to}`))
  await sql('create function stays() returns int language sql return 1')
  await rename('function_ddl_audit_log', 'elsewhere')
  const answers = [
    await upsert('create function unaudited() returns int language sql return 1'),
    await drop('stays', []),
  ]
  await rename('elsewhere', 'function_ddl_audit_log')
  for (const { status, body } of answers) assert.deepEqual([status, body.code], [503, 'audit_unavailable'])
  assert.deepEqual(await sql(`select proname from pg_proc where proname in ('stays', 'unaudited')`), [
    { proname: 'stays' },
  ])
  assert.deepEqual(await audited('unaudited'), { changes: [], definitions: [] })
})

test('functions of the system and of extensions are listed only on request, a page at a time', async () => {
  await sql('create extension if not exists citext')
  const list = async (query: string) => (await key.get(`/management/functions?${query}`)).body.data
  assert.equal((await list('name_like=citext%25')).total, 0)
  const all = await list('name_like=citext%25&include_system=true&limit=3&include_definition=true')
  assert.deepEqual([all.functions.length, all.limit, all.total > 20], [3, 3, true])
  assert.ok((await list('schema=pg_catalog&include_system=true&limit=1')).total > 1_000)
  assert.equal((await list('schema=pg_catalog')).total, 0)
})
