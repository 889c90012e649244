import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyExpression } from '#databases/drivers/postgres/sql/policies/expression.ts'
import type { Catalogue, Table } from '#databases/plan/catalogue.ts'
import { Failure } from '#kernel/errors.ts'

const tables = [
  { schema: 'public', name: 'doc' },
  { schema: 'public', name: 'member' },
  { schema: 'sales', name: 'order' },
] as unknown as readonly Table[] // the names are all that is read
const catalogue = {
  tables,
  find: (schema: string, name: string) =>
    tables.find((table) => table.schema === schema && table.name === name),
  referencing: () => [],
} as Catalogue
const scope = { field: 'policies[0].using', catalogue, table: { schema: 'public', name: 'doc' } }

const CLAIM = `pg_catalog.current_setting('request.claims', true)`

for (const [given, written] of [
  ['true', 'true'],
  ['open -- and nothing else', '"open"'],
  ["E'\\'' || title = 'x';", `(('''') || ("title")) = ('x')`],
  ["doc.title ilike '%it''s%' and not hidden", `("doc"."title") ilike ('%it''s%')`],
  ["(current_setting('request.claims')::json ->> 'user_id')::uuid = user_id", CLAIM],
  ['id in (1, 2) or id between 5 and 9 or id is distinct from 3', 'in ((1), (2))'],
  [
    'exists (select from member m where m.doc_id = doc.id)',
    'exists (select  from "public"."member" as "m" where',
  ],
  ['id in (select doc_id from member join sales."order" o on o.id = member.id)', '"sales"."order" as "o" on'],
  ["case kind when 'a' then open else lower(title) = any (array['x', 'y']) end", `any (array['x', 'y'])`],
  ["created_at > now() - interval '1 day'", `pg_catalog."now"()`],
  ["coalesce(title, '') <> '' and (meta -> 'a' ->> 'b') is null", 'is null'],
  ["extract(year from created_at) = 2026 and created_at at time zone 'UTC' < current_timestamp", 'extract'],
] as const)
  test(`is written anew: ${given}`, async () => {
    const text = await policyExpression(given, scope)
    assert.ok(text.includes(written), text)
    // The written text can be read again, with the same meaning.
    assert.equal(await policyExpression(text, scope), text)
  })

for (const hostile of [
  '', ' ', ';', '--', 'true); drop table x --', 'true; drop table x', 'true) with check (true', 'true from doc', 'true as x', 'true, false',
  'true union select true', 'true limit 1', 'true where false', 'select true', '*', 'doc.*', '$1 = 1', 'true\0', "'\\'; drop table x --",
  'exists (select from pg_authid)', 'exists (select from pg_catalog.pg_authid)', 'exists (select from information_schema.tables)',
  'exists (select from service.session)', 'exists (select from service_idempotency)', 'exists (select from missing)', 'exists (select from other.public.doc)',
  'exists (select from doc)', 'exists (select from member join doc on true)', 'exists (table pg_authid)', 'exists (values (1))',
  'exists (select from generate_series(1, 9))', 'exists (select from (select 1) x)', 'exists (with x as (select 1) select from x)',
  'exists (with x as (delete from member returning 1) select from x)', 'exists (select from member for update)', 'exists (select from member limit 1)',
  'exists (select from only member)', 'exists (select from member tablesample system (1))', 'exists (select count(*) from member having true)',
  'exists (select into x from member)', 'exists (select distinct id from member)', '(select id from member union select 1) = 1', 'exists (select from member, lateral pg_sleep(9))',
  "lo_import('/etc/passwd') > 0", "pg_read_file('/etc/passwd') <> ''", "dblink('x', 'y') is null", "set_config('role', 'none', false) = ''", "nextval('s') > 0",
  "query_to_xml('select 1', true, true, '') is null", "current_setting('service.secret') = ''", 'current_setting(title) = title', "current_setting('request.claims' || '') = ''",
  "current_setting('request.claims', x) = ''", "pg_catalog.pg_sleep(9) is null", 'random() > 0.5', 'public.f(id)', 'f(id)', 'now(variadic array[1]) is null',
  'count(*) > 0', 'sum(id) over () > 0', 'lower(distinct title) = 1', 'id operator(pg_catalog.=) 1', 'id operator(public.=) 1', 'id @@ 1', "title ~ '(a+)+$'", "title similar to 'x'",
  "'pg_authid'::regclass is not null", "1::oid = 1", "title::public.mood = 'x'", 'title::varchar(3) = title', "'x'::regproc is null", "'1'::money = x",
  'row(id, title) = row(1, 2)', '(id, title) = (1, 2)', '(doc).title = 1', '(doc).pg_cancel_backend', 'tags[1] = 1', 'current_user = title', 'session_user = title', 'user = title',
  'title collate "C" = 1', "xmlparse(content '<a/>') is null", 'grouping(id) = 0', 'id = all (select 1)', 'default', 'a.b.c.d = 1', `${'('.repeat(30)}${'not '.repeat(60)}true${')'.repeat(30)}`,
  `id${' + 1'.repeat(1_300)} = 1`, `'${'x'.repeat(6_000)}' = title`, "b'101' = x", 'current_schema = title', 'json_table(x, y)', 'merge_action() = 1', 'x is json', 'json_object() is null',
]) // biome-ignore format: a table
  test(`is refused: ${hostile.slice(0, 100)}`, async () => {
    await assert.rejects(policyExpression(hostile, scope), (error: Error) => {
      assert.ok(error instanceof Failure, String(error))
      assert.ok(['invalid_policy', 'invalid_identifier'].includes(error.code), error.code)
      return true
    })
  })

test('a function that policies of Supabase call is refused with what to write instead', async () => {
  await assert.rejects(policyExpression('auth.uid() = id', scope), {
    hint: `The function auth.uid is not allowed in a policy: the user is (current_setting('request.claims')::json ->> 'user_id')::uuid`,
  })
})
