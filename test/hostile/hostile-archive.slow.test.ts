import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { joinEmbedded } from '#kernel/db/embedded/join.ts'
import { withClient } from '#test/database.ts'
import { type Actor, actor, PASSWORD } from '#test/harness.ts'
import { createTemporaryHome, type Program, runProgram, startProgram } from '../journeys/program.ts'

const home = await createTemporaryHome()
after(() => home.remove())
const started: Program[] = []
after(async () => void (await Promise.all(started.map((program) => program.end('SIGKILL')))))
const IN = (folder: string) => ({ SERVICE_SERVER__DATA_DIR: folder })
const ada = { name: 'Ada', email: 'ada@example.com', password: PASSWORD }

async function start(folder: string) {
  const program = await startProgram(home.folder, IN(folder))
  started.push(program)
  const read = async (name: string) =>
    (await readFile(path.join(home.folder, folder, name), 'utf8').catch(() => '')).trim()
  const at = (headers: Record<string, string>) => actor(program.url, headers)
  return {
    program,
    anon: at({}),
    caller: at({ apikey: await home.key(), 'x-service-client': 'default' }),
    reader: at({ apikey: await read('admin-key'), 'x-service-client': 'logging' }),
  }
}

async function sql(caller: Actor, query: string) {
  const answer = await caller.post('/query/sql', { driver: 'postgresql', query })
  assert.equal(answer.status, 200, `${query}: ${answer.text}`)
  return answer.body.data
}

/** Code that notes who runs it. Any caller with the right to SQL can leave it. */
const TRAPS = [
  'create schema evil',
  'create table evil.ran_as (what text, who text)',
  `create function evil.note(what text) returns boolean language sql as 'insert into evil.ran_as values (what, session_user); select true'`,
  'grant all on schema evil to public',
  'grant all on evil.ran_as to public',
  // Of the same names as the system's, some with better fitting types, and found first or without a schema.
  `create function evil.to_regclass(text) returns regclass language sql as $$ select evil.note('to_regclass'); select 0::regclass $$`,
  `create function public.to_regclass(varchar) returns regclass language sql as $$ select evil.note('to_regclass'); select 0::regclass $$`,
  `create function evil.pg_backup_start(text, boolean) returns pg_lsn language sql as $$ select evil.note('backup'); select '0/0'::pg_lsn $$`,
  `create function evil.is_equal(oid, regclass) returns boolean language sql as $$ select evil.note('=') $$`,
  'create operator public.= (leftarg = oid, rightarg = regclass, function = evil.is_equal)',
  'create operator evil.= (leftarg = oid, rightarg = regclass, function = evil.is_equal)',
  'drop table if exists service_idempotency',
  'create table service_idempotency (key text primary key)',
  `create function evil.fire() returns trigger language plpgsql as $$ begin perform evil.note('trigger'); return null; end $$`,
  'create trigger trap before delete or truncate on service_idempotency execute function evil.fire()',
  `create rule trap as on delete to service_idempotency do also select evil.note('rule')`,
  'create view keys as select key from service_idempotency',
  // The table cannot be dropped any more.
  'create extension citext',
  'alter extension citext add table service_idempotency',
]

/** Of the role that callers have: it may change itself. */
const OWN_ROLE = [
  `alter role current_user set local_preload_libraries = 'nothing'`,
  'alter role current_user set role = anon',
  'alter role current_user in database gatehouse_default set default_transaction_read_only = on',
  'alter role current_user set statement_timeout = 1',
  `alter role current_user password 'mine'`,
]

/** Of the database, which belonged to its callers in earlier versions. */
const OWN_DATABASE = [
  'set role = gatehouse_default',
  `set local_preload_libraries = 'nothing'`,
  'set default_transaction_read_only = on',
  'set search_path = evil, pg_catalog',
  'set statement_timeout = 1',
  'set transaction_timeout = 1',
  'set idle_session_timeout = 1',
  `set default_transaction_isolation = 'serializable'`,
  'connection limit 0',
  'is_template true',
]

test('whatever callers with the right to SQL leave behind, an archive is restored, runs nothing of it, and names it', async () => {
  const first = await start('data')
  assert.equal((await first.anon.post('/api/auth/sign-up/email', ada)).status, 200)
  await sql(first.caller, `create table kept as select 'archived' as word`)
  for (const statement of TRAPS) await sql(first.caller, statement)
  const refused = await first.caller.post('/query/sql', {
    driver: 'postgresql',
    query: 'alter database gatehouse_default set role = gatehouse_default',
  })
  assert.deepEqual([refused.status, refused.body.code], [403, 'permission_denied'], refused.text)
  await giveToCallers()
  for (const change of OWN_DATABASE) await sql(first.caller, `alter database gatehouse_default ${change}`)
  // In one call, since no further connection can be opened.
  await sql(first.caller, OWN_ROLE.join('; '))
  const made = await runProgram(home.folder, ['backup', '--output', 'all.gatehouse'])
  assert.equal(made.code, 0, made.stderr)
  await first.program.end('SIGTERM')

  // The state that a killed restore leaves.
  await mkdir(path.join(home.folder, 'restored/postgres/restore-killed/data'), { recursive: true })
  const restored = await runProgram(
    home.folder,
    ['restore', 'all.gatehouse', '--secret-file', 'data/secret'],
    IN('restored'),
  )
  assert.equal(restored.code, 0, restored.stderr)
  assert.equal(existsSync(path.join(home.folder, 'restored/postgres/restore-killed')), false)
  for (const warning of [
    /^The settings of database gatehouse_default were removed: role, local_preload_libraries, .*idle_session_timeout/m,
    /^The settings of role gatehouse_default were removed: local_preload_libraries, role, statement_timeout$/m,
    /^The settings of role gatehouse_default in database gatehouse_default were removed: default_transaction_read_only$/m,
    /^The idempotency keys in database gatehouse_default were not deleted: .*extension citext requires it$/m,
  ])
    assert.match(restored.stderr, warning)

  // The original, too, of which nothing was repaired since.
  for (const folder of ['restored', 'data']) {
    const again = await start(folder)
    assert.match(
      again.program.output(),
      /"event":"repaired","msg":"The password of role gatehouse_default had been changed/,
    )
    assert.equal((await again.anon.post('/api/auth/sign-in/email', ada)).status, 200)
    assert.deepEqual(await sql(again.caller, 'select word from kept'), [{ word: 'archived' }])
    await sql(again.caller, 'create table written (); drop table written')
    await sql(again.reader, 'select count(*) from database_audit_log')
    assert.deepEqual(
      await sql(again.caller, 'select what, who from evil.ran_as where who <> current_user'),
      [],
    )
    assert.equal(await again.program.end('SIGTERM'), 0)
  }
})

async function giveToCallers(): Promise<void> {
  const password = (await readFile(path.join(home.folder, 'data/postgres-password'), 'utf8')).trim()
  const server = await joinEmbedded(path.join(home.folder, 'data/postgres'), password)
  assert.ok(server)
  await withClient(server.superuserUrl, (client) =>
    client.query('alter database gatehouse_default owner to gatehouse_default'),
  )
}
