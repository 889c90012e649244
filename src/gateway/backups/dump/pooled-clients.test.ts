import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Answer, testService } from '#test/harness.ts'
import { installedPrograms, startInstalledServer } from '#test/installed-postgres.ts'
import { startPgBouncer, WITHOUT_PGBOUNCER } from '#test/pgbouncer.ts'

const programs = await installedPrograms()
const skip = WITHOUT_PGBOUNCER || (programs === undefined && 'needs an installed PostgreSQL with pg_dump')
const server = skip === false && programs !== undefined ? await startInstalledServer(programs) : undefined
const pooler = server && (await startPgBouncer(server.superuserUrl))
after(async () => {
  await pooler?.stop()
  await server?.stop()
})
const unused = 'postgres://shop:x@127.0.0.1:1/shop'
const direct = (await server?.database('shop')) ?? unused
const elsewhere = (await server?.database('other')) ?? unused
const url = Object.assign(new URL(direct), { port: String(pooler?.port ?? 1) }).href
const t = await testService({
  config: {
    clients: {
      pooled: { url },
      both: { url, direct_url: direct },
      wrong: { url, direct_url: elsewhere },
    },
  },
})
const onShop = (text: string) => withClient(direct, async (client) => (await client.query(text)).rows)
const told = ({ status, body }: Answer) => [status, body.code, body.message]
const backUp = (client_name: string) => t.admin.post('/admin/backups', { client_name })
const restore = (id: string, client_name: string) =>
  t.admin.post(`/admin/backups/${id}/restore`, { client_name, confirm: client_name })
const done = async (answer: Answer) => {
  assert.equal(answer.status, 202, answer.text)
  await t.service.kernel.jobs.drain(t.service.handlers)
  return (await t.admin.get(`/admin/backups/jobs/${answer.body.data.job_id}`)).body.data
}

test('a client behind a pooler is backed up and restored by its direct URL, and no session of the pooler keeps a setting', {
  skip,
}, async () => {
  await onShop(`create table city (id int primary key, name text);
    insert into city select n, 'city ' || n from generate_series(1, 100) n`)
  const backup = await done(await backUp('both'))
  assert.deepEqual([backup.status, backup.error_message], ['completed', null])
  await onShop('delete from city where id > 10')
  const restored = await done(await restore(backup.id, 'both'))
  assert.deepEqual([restored.status, restored.error_message], ['completed', null])
  assert.deepEqual(await onShop('select count(*)::int as cities from city'), [{ cities: 100 }])
  // PgBouncer takes its sessions in turn.
  const settings = await Promise.all(
    Array.from({ length: 20 }, () =>
      withClient(url, async (client) => (await client.query(SETTINGS)).rows[0]),
    ),
  )
  for (const setting of settings) assert.deepEqual(setting, settings[0])
  assert.equal(settings[0].row_security, 'on')
  const again = await done(await backUp('both'))
  assert.equal(again.status, 'completed', again.error_message)
})

test('without its direct URL, a client behind a pooler is neither backed up nor restored, which names the setting', {
  skip,
}, async () => {
  const message =
    "A pooler answers at the address of client pooled, and this needs a session of its own: set clients.pooled.direct_url (of a registered client its direct_url) to PostgreSQL's own address"
  const backup = await done(await backUp('both'))
  const before = (await t.admin.get('/admin/backups/jobs')).body.data.total
  for (const answer of [await backUp('pooled'), await restore(backup.id, 'pooled')])
    assert.deepEqual(told(answer), [503, 'direct_url_missing', message])
  const wrong = 'The direct_url of client wrong leads to another database, or to another role, than its url'
  for (const answer of [await backUp('wrong'), await restore(backup.id, 'wrong')])
    assert.deepEqual(told(answer), [503, 'direct_url_unusable', wrong])
  assert.equal((await t.admin.get('/admin/backups/jobs')).body.data.total, before)
})

test('management uses the direct URL, and goes through the pooler without one', { skip }, async () => {
  const asSuperuser = (text: string) =>
    withClient(Object.assign(new URL(server?.superuserUrl ?? ''), { pathname: '/shop' }).href, (client) =>
      client.query(text),
    )
  // In a session of its own the settings come with the startup message, and else with the statement.
  await asSuperuser(`create table public.change (source text);
    create function public.note_change() returns event_trigger language plpgsql security definer as $$ begin
      insert into public.change select source from pg_settings where name = 'statement_timeout'; end $$;
    create event trigger note_change on ddl_command_end when tag in ('CREATE TABLE') execute function public.note_change()`)
  const change = async (client_name: string) => {
    const key = await t.key(['management.*'], { client_name })
    const headers = { 'x-service-client': client_name }
    return key.post('/management/tables', { table_name: `made_by_${client_name}` }, { headers })
  }
  for (const [client, source] of [
    ['both', 'client'],
    ['pooled', 'session'],
  ] as const) {
    const answer = await change(client)
    assert.equal(answer.status, 200, answer.text)
    const { rows } = await asSuperuser('delete from public.change returning source')
    assert.deepEqual(rows, [{ source }])
  }
  assert.deepEqual(told(await change('wrong')).slice(0, 2), [503, 'direct_url_unusable'])
  const made = await withClient(elsewhere, async (client) =>
    client.query('select from pg_tables where tableowner = current_user'),
  )
  assert.equal(made.rowCount, 0)
})

/** Those that pg_dump and pg_restore change. */
const SETTINGS = `select current_setting('row_security') as row_security, current_setting('search_path') as path,
  current_setting('lock_timeout') as lock, current_setting('statement_timeout') as statement,
  current_setting('check_function_bodies') as bodies, current_setting('client_min_messages') as messages`
