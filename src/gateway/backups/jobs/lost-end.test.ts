import assert from 'node:assert/strict'
import { access } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import { finishJob } from './end.ts'
import { findBackupJob } from './jobs.ts'

const { t, done, find, backUp, restore, onShop, cities } = await backupService()
const { kernel } = t.service

/** The next time that a job is written as completed, the connection to the control database breaks. */
const breakNextEnd = () =>
  withClient(t.controlUrl, (client) =>
    client.query(`
      drop sequence if exists service.breaks;
      create sequence service.breaks;
      create or replace function service.break_once() returns trigger language plpgsql as $$ begin
        if new.status = 'completed' and nextval('service.breaks') = 1 then
          perform pg_terminate_backend(pg_backend_pid());
          perform pg_sleep(1);
        end if;
        return new;
      end $$;
      create or replace trigger break_once before update on service.backup_job for each row execute function service.break_once()`),
  )

test(
  'a backup and a restore are completed although their end has to be written twice',
  NEEDS_PROGRAMS,
  async () => {
    await breakNextEnd()
    const backup = await done(await backUp())
    assert.deepEqual([backup.status, backup.error_message], ['completed', null])
    await access(backup.location)
    await onShop('delete from city')
    await breakNextEnd()
    const restored = await done(await restore(backup.id))
    assert.deepEqual([restored.status, restored.error_message], ['completed', null])
    assert.deepEqual(await cities(), { n: 1_000, sum: 500_500 })
  },
)

test(
  'a backup whose end was written keeps its file when it is called lost later',
  NEEDS_PROGRAMS,
  async () => {
    const { id, location } = await done(await backUp())
    const job = await findBackupJob(kernel, id)
    const now = await finishJob(kernel, job, { status: 'failed', errorMessage: 'lost' })
    assert.deepEqual([now?.status, (await find(id)).status], ['completed', 'completed'])
    await access(location)
  },
)

test('of requests to cancel a running job at once the audit trail shows one', async () => {
  const [now, id] = [kernel.now(), crypto.randomUUID()]
  await sql`insert into service.backup_job (id, job_type, status, client_name, format, created_at, updated_at, lease_until, installation_id)
    values (${id}, 'backup', 'running', 'default', 'dump', ${now}, ${now}, ${new Date(now.getTime() + 20_000)}, (select id from service.installation))`.execute(
    kernel.db,
  )
  const answers = await withClient(t.controlUrl, async (client) => {
    await client.query('begin')
    await client.query('select from service.backup_job where id = $1 for update', [id])
    const asked = Promise.all(
      Array.from({ length: 4 }, () => t.admin.send('POST', `/admin/backups/jobs/${id}/cancel`)),
    )
    const waiters = `select from ${OWN_LOCKS} where not granted`
    while (((await client.query(waiters)).rowCount ?? 0) < 4) await sleep(10)
    await client.query('commit')
    return asked
  })
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  const { rows } =
    await sql`select from service.audit_event where action = 'backup.cancelled' and target_id = ${id}`.execute(
      kernel.db,
    )
  assert.equal(rows.length, 1)
})
