import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { catalogueDigest } from '#test/management/catalogue-digest.ts'

const t = await testService()
const key = await t.key(['management.*', 'gateway.*'])
const emitted: string[] = []
t.service.kernel.events.subscribe((name) => void emitted.push(name))

type Attempt = { readonly method: string; readonly path: string; readonly body: object }

const post = (path: string, body: object): Attempt => ({ method: 'POST', path: `/management/${path}`, body })
const newTable = (more: object): Attempt =>
  post('tables', { table_name: 'evil', columns: [{ name: 'a', data_type: 'text' }], ...more })
const newColumn = (more: object): Attempt =>
  newTable({ columns: [{ name: 'a', data_type: 'text', ...more }] })
const edit = (operation: object, table = 'target'): Attempt => ({
  method: 'PATCH',
  path: `/management/tables/${encodeURIComponent(table)}`,
  body: { operations: [operation] },
})
const drop = (path: string, body: object = {}): Attempt => ({
  method: 'DELETE',
  path: `/management/${path}`,
  body,
})
const index = (more: object): Attempt => post('indexes', { table_name: 'target', columns: ['word'], ...more })
const extension = (more: object): Attempt => post('extensions/install', { extension_name: 'citext', ...more })

/** In a new table, in a new column of a table, and where a column changes. */
const dataTypes = [
  'text; drop table target',
  'text) ; create role evil superuser; --',
  'text default pg_read_file($$/etc/passwd$$)',
  'integer generated always as (pg_backend_pid()) stored',
  'text collate "C"',
  'text check (pg_sleep(10) is null)',
  'text references target (id)',
  'pg_catalog.text',
  '"text"',
  'regclass',
  'oid',
  'pg_lsn',
  'unknown',
  'record',
  'target',
  'anyelement',
  'numeric(1); drop table target',
  'numeric(1,2,3)',
  'numeric(99999999999)',
  'varchar(-1)',
  'varchar(0)',
  'varchar(10485761)',
  'char(0)',
  'numeric(0)',
  'numeric(1001)',
  'numeric(5, 1001)',
  'integer(5)',
  'uuid(1)',
  'text(5)',
  'timestamp(1, 2)',
  'interval(-1)',
  'text[][3]; --',
  'text/**/[]',
  "text' || 'a",
  'setof text',
  'target.word%type',
  'bigint\u0000',
  '',
].flatMap((data_type) => [
  newColumn({ data_type }),
  edit({ operation: 'add_column', column: { name: 'evil', data_type } }),
  edit({ operation: 'alter_type', column_name: 'word', data_type }),
])

const defaults = [
  '1); drop table target; --',
  '1; create role evil superuser',
  '(select word from target limit 1)',
  '(select passwd from pg_shadow limit 1)',
  "pg_read_file('/etc/passwd')",
  "lo_import('/etc/passwd')",
  "set_config('role', 'postgres', false)",
  "current_setting('is_superuser')",
  'pg_sleep(60)',
  'now(pg_sleep(60))',
  "nextval('target_id_seq')",
  "'target'::regclass",
  "'x'::public.evil",
  'public.now()',
  "dblink('host=127.0.0.1', 'select 1')",
  "query_to_xml('drop table target', true, true, '')",
  'random() over ()',
  'now() filter (where true)',
  'case when true then 1 end',
  'array(select 1)',
  'row(1, 2)',
  '1 union select 2',
  '1 as evil',
  '$1',
  'word',
  'current_user',
  'session_user || 1',
  '$body$ evil',
  "E'\\",
  'now() + interval',
  '1 /* unclosed',
  '',
].flatMap((default_expression) => [
  newColumn({ default_expression }),
  edit({ operation: 'set_default', column_name: 'word', default_expression }),
])

const names = [
  'a b',
  'a"b',
  'a.b',
  'a;drop table target',
  "a'--",
  '1a',
  '-',
  '$a',
  'a\u00a0b',
  'a\u202eb',
  'x'.repeat(64),
  'ü'.repeat(32),
].flatMap((name) => [
  newTable({ table_name: name }),
  newTable({ schema_name: name }),
  newColumn({ name }),
  edit({ operation: 'add_column', column: { name, data_type: 'text' } }),
  edit({ operation: 'rename_column', column_name: 'word', new_name: name }),
  edit({ operation: 'rename_table', new_name: name }),
  index({ index_name: name }),
])

/** Names of the service and of the database. */
const reserved = [
  newTable({ table_name: 'service_idempotency' }),
  newTable({ schema_name: 'service', table_name: 'session' }),
  newTable({ schema_name: 'service_jobs' }),
  newTable({ schema_name: 'pg_catalog' }),
  newTable({ schema_name: 'pg_temp' }),
  newTable({ schema_name: 'information_schema' }),
  newColumn({ references: { table: 'service_idempotency', column: 'key' } }),
  newColumn({ references: { table: 'service.user', column: 'id' } }),
  newColumn({ references: { table: 'pg_catalog.pg_class', column: 'oid' } }),
  newColumn({ references: { table: 'a.b.c', column: 'id' } }),
  newColumn({ references: { table: 'target', column: 'id) on delete cascade; --' } }),
  newColumn({ references: { table: 'target', column: 'id', on_delete: 'cascade; drop table target' } }),
  edit({ operation: 'rename_table', new_name: 'service_idempotency' }),
  edit({ operation: 'drop_default', column_name: 'key' }, 'service_idempotency'),
  drop('tables/service_idempotency', { cascade: true }),
  drop('tables/service_idempotency/columns/answer'),
  drop('tables/pg_class', { schema_name: 'pg_catalog', cascade: true }),
  drop('tables/session', { schema_name: 'service' }),
  drop('indexes/service_idempotency_pkey'),
  drop('indexes/pg_class_oid_index', { schema_name: 'pg_catalog' }),
  index({ table_name: 'service_idempotency', columns: ['answer'] }),
  index({ index_name: 'service_idempotency_created_at' }),
  index({ schema_name: 'pg_catalog', table_name: 'pg_class', columns: ['relname'] }),
  edit({ operation: 'rename_column', column_name: 'id', new_name: 'evil' }),
  drop('tables/target/columns/id', { cascade: true }),
]

/** References to what exists, and forms of an index. */
const others = [
  edit({ operation: 'drop_default', column_name: 'word"; drop table target; --' }),
  edit({ operation: 'set_not_null', column_name: 'ctid' }),
  edit({ operation: 'rename_column', column_name: 'xmin', new_name: 'evil' }),
  edit({ operation: 'alter_type', column_name: 'word', data_type: 'bigserial' }),
  edit({ operation: 'drop_table' }),
  edit({ operation: 'add_column', column: { name: 'id', data_type: 'text', primary_key: true } }, 'sight'),
  drop('tables/sight'),
  drop('tables/target/columns/ctid'),
  index({ columns: ['lower(word)'] }),
  index({ columns: ['word desc nulls last'] }),
  index({ columns: ['word") where pg_sleep(10) is null --'] }),
  index({ columns: [] }),
  index({ method: 'btree (word); drop table target; --' }),
  index({ method: 'heap' }),
]

const extensions = [
  extension({ extension_name: 'dblink' }),
  extension({ extension_name: 'postgres_fdw' }),
  extension({ extension_name: 'file_fdw' }),
  extension({ extension_name: 'plperlu' }),
  extension({ extension_name: 'adminpack' }),
  extension({ extension_name: 'citext; drop table target' }),
  extension({ extension_name: 'citext" schema public cascade; --' }),
  extension({ extension_name: 'CITEXT' }),
  extension({ extension_name: '../../evil' }),
  extension({ schema_name: 'pg_catalog' }),
  extension({ schema_name: 'service' }),
  extension({ schema_name: 'information_schema' }),
]

const BODY = `returns int language sql as 'select 1'`
/** functions.test.ts has more of them. */
const functions = [
  'drop table target',
  `create function evil() ${BODY}; drop table target`,
  `create function evil() ${BODY}; create role evil superuser`,
  `create procedure evil() language sql as 'drop table target'`,
  'do $$ begin drop table target; end $$',
  'create trigger evil before insert on target execute function evil()',
  'create role evil superuser',
  'alter role current_user superuser',
  'create extension citext',
  'create schema evil',
  'grant all on target to public',
  'comment on column target.id is null',
  "copy target from program 'id'",
  'set role postgres',
  'begin; drop table target; commit',
  `explain analyze create function evil() ${BODY}`,
  `create function evil() returns int language c as '/lib/evil', 'evil'`,
  `create function evil() returns int language internal as 'pg_sleep'`,
  `create function evil() returns int language plpython3u as 'import os'`,
  `create function pg_catalog.evil() ${BODY}`,
  `create function service.evil() ${BODY}`,
  `create function pg_temp.evil() ${BODY}`,
  `create function "evil""; drop table target; --"() ${BODY}`,
  `create function evil(a int default 1); drop table target; --`,
].map((ddl) => ({ method: 'PUT', path: '/management/functions', body: { ddl } }))

const ATTEMPTS = [...functions, ...dataTypes, ...defaults, ...names, ...reserved, ...others, ...extensions]

test('hostile definitions, names and extensions are refused, and the catalogue stays as it was', async () => {
  assert.ok(ATTEMPTS.length >= 60)
  await key.post('/management/tables', {
    table_name: 'target',
    columns: [{ name: 'word', data_type: 'text' }],
  })
  await withClient(t.clientUrl, async (client) => {
    await client.query('create view sight as select word from target')
    const before = await catalogueDigest(client)
    emitted.length = 0
    const wrong: string[] = []
    for (const { method, path, body } of ATTEMPTS) {
      const answer = await key.send(method, path, { body })
      if (answer.status !== 400) wrong.push(`${method} ${path} ${JSON.stringify(body)}: ${answer.text}`)
    }
    assert.deepEqual(wrong, [])
    assert.equal(await catalogueDigest(client), before)
    assert.deepEqual(emitted, [])
  })
})

test('the digest notices each kind of change', async () => {
  await withClient(t.clientUrl, async (client) => {
    const before = await catalogueDigest(client)
    for (const change of [
      `create table changed ()`,
      `alter table target add changed int`,
      `alter table target alter word set default ''`,
      `alter table target add check (id > 0)`,
      `create index changed on target (word)`,
      `create function changed() returns int language sql as 'select 1'`,
      `create policy changed on target using (true)`,
      `alter table target enable row level security`,
      `grant select on target to public`,
      `comment on column target.id is null`,
      `create schema changed`,
      `create extension citext`,
    ]) {
      await client.query('begin')
      await client.query(change)
      assert.notEqual(await catalogueDigest(client), before, change)
      await client.query('rollback')
    }
  })
})
