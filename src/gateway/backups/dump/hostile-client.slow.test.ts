import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'

const { t, asOperator, done, backUp, restore, cities, onShop } = await backupService()
const caller = await t.key(['*'], { client_name: 'shop' })
const sql = async (query: string) => {
  const headers = { 'x-service-client': 'shop' }
  const answer = await caller.post('/query/sql', { driver: 'postgresql', query }, { headers })
  assert.equal(answer.status, 200, `${query}: ${answer.text}`)
}

/** Everything that a caller with the right to SQL may leave in the database of its client. */
const LEFT = [
  'create schema evil',
  'create table evil.ran_as (what text, who text)',
  `create function evil.note(what text) returns boolean language sql as 'insert into evil.ran_as values (what, current_user); select true'`,
  `create function public.set_config(text, text, boolean) returns text language sql as $$ select evil.note('set_config'); select 'x' $$`,
  `create function evil.to_regclass(text) returns regclass language sql as $$ select evil.note('to_regclass'); select 0::regclass $$`,
  `create function evil.current_database() returns name language sql as $$ select evil.note('current_database'); select 'x'::name $$`,
  'drop table if exists service_idempotency',
  'create table service_idempotency (key text primary key)',
  `insert into service_idempotency values ('kept')`,
  `create function evil.refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$`,
  'create trigger trap before delete or truncate on service_idempotency execute function evil.refuse()',
  'create view keys as select key from service_idempotency',
  `create table evil.kept (key text references service_idempotency, words text[], price money)`,
  `insert into evil.kept values ('kept', '{☃,null}', '1234.56')`,
]

const SETTINGS = [
  `local_preload_libraries = 'nothing'`,
  'default_transaction_read_only = on',
  `default_transaction_isolation = 'serializable'`,
  'default_transaction_deferrable = on',
  'search_path = evil, pg_catalog',
  'statement_timeout = 1',
  'lock_timeout = 1',
  'idle_in_transaction_session_timeout = 1',
  'role = shop_anon',
  'row_security = off',
  `default_table_access_method = 'nothing'`,
  `client_encoding = 'LATIN1'`,
  'array_nulls = off',
  'tcp_user_timeout = 1',
]

test(
  'whatever callers with the right to SQL leave in a database, its backup is made and restored, and runs nothing of it',
  NEEDS_PROGRAMS,
  async () => {
    await asOperator('create role shop_anon; grant shop_anon to shop')
    const before = await cities()
    for (const statement of LEFT) await sql(statement)
    // In one call: a later connection would begin with them.
    await sql(
      ['database shop', 'role shop', 'role shop in database shop']
        .flatMap((subject) => SETTINGS.map((setting) => `alter ${subject} set ${setting}`))
        .join('; '),
    )
    await asOperator(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = pg_catalog.current_database() and usename = 'shop'`,
    )
    const backup = await done(await backUp())
    assert.deepEqual([backup.status, backup.error_message], ['completed', null])
    await asOperator(
      'delete from public.city where id > 10; create table evil.later (); alter table evil.later owner to shop',
    )
    const restored = await done(await restore(backup.id))
    assert.deepEqual([restored.status, restored.error_message], ['completed', null])
    await asOperator(
      'alter role shop reset all; alter role shop in database shop reset all; alter database shop reset all',
    )
    assert.deepEqual(await cities(), before)
    const left = await onShop(
      `select (select count(*)::int from evil.ran_as) as ran, to_regclass('public.service_idempotency') as keys`,
    )
    assert.deepEqual(left.rows, [{ ran: 0, keys: null }])
    const kept = await onShop(
      'select key, words, price::numeric::text as price, to_regclass($$evil.later$$) is null as is_gone from evil.kept',
    )
    assert.deepEqual(kept.rows, [{ key: 'kept', words: ['☃', null], price: '1234.56', is_gone: false }])
  },
)

test('what the operator has made in the database of a client is no obstacle', NEEDS_PROGRAMS, async () => {
  const before = await cities()
  await asOperator(`create extension pg_stat_statements;
    create function public.watch() returns event_trigger language plpgsql as $$ begin end $$;
    create event trigger watch on ddl_command_end execute function public.watch()`)
  const backup = await done(await backUp())
  assert.deepEqual([backup.status, backup.error_message], ['completed', null])
  for (const change of ['select', 'drop event trigger watch']) {
    await asOperator(change)
    await onShop('delete from city where id > 10')
    const restored = await done(await restore(backup.id))
    assert.deepEqual([restored.status, restored.error_message], ['completed', null])
    assert.deepEqual(await cities(), before)
    const { rows } = await asOperator(
      'select (select count(*)::int from pg_event_trigger) as triggers, count(*)::int as statements from pg_extension where extname ~ $$statements$$',
    )
    assert.deepEqual(rows, [{ triggers: change === 'select' ? 1 : 0, statements: 1 }])
    const record = t.log.findLast((line) => line.includes('restore_left_out')) ?? ''
    assert.match(
      record,
      /EVENT TRIGGER - watch postgres.*EXTENSION - pg_stat_statements|EXTENSION - pg_stat_statements.*EVENT TRIGGER - watch/,
    )
  }
})
