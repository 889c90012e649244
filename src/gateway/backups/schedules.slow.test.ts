import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { testService } from '#test/harness.ts'

const MINUTE = 60_000
const EVERY_HOUR = { client: 'shop', cron: '0 * * * *', keep: 2 }
const { t, clients, events, drain, find, backUp } = await backupService({
  schedules: { hourly: EVERY_HOUR, 'on-the-hour': EVERY_HOUR },
})
const { kernel } = t.service
// Ten minutes past the hour: the minutes that a test turns the clock on must not reach a further run by chance.
t.advance(((70 - kernel.now().getUTCMinutes()) % 60) * MINUTE)
const run = (task: string) =>
  t.service.recurring.find(({ name }) => name === task)?.run() ?? assert.fail(`no ${task}`)
const look = () => run('fail-lost-backups')
const ofSchedule = async (schedule: string) =>
  kernel.db.selectFrom('backupJob').selectAll().where('schedule', '=', schedule).orderBy('id').execute()
const statuses = async (schedule: string) => (await ofSchedule(schedule)).map(({ status }) => status)

test(
  'two schedules at one minute, and a backup by hand, run one after the other',
  NEEDS_PROGRAMS,
  async () => {
    const byHand = await backUp()
    await Promise.all([run('backup-hourly'), run('backup-on-the-hour')])
    assert.deepEqual([await statuses('hourly'), await statuses('on-the-hour')], [['pending'], ['pending']])
    // None begins while the job by hand waits or runs.
    await look()
    const [active] = (await t.admin.get('/admin/backups/jobs?status=pending&limit=1')).body.data.jobs
    assert.ok(active)
    events.splice(0)
    assert.equal(await drain(), 3)
    assert.deepEqual(
      [await statuses('hourly'), await statuses('on-the-hour')],
      [['completed'], ['completed']],
    )
    assert.equal((await find(byHand.body.data.job_id)).status, 'completed')
    const names = events.map(([name]) => name)
    assert.deepEqual(names, [
      'backup_started',
      'backup_completed',
      'backup_started',
      'backup_completed',
      'backup_started',
      'backup_completed',
    ])
  },
)

test(
  'a run that waits is listed and cancelled, and a further run of its schedule is a failed job',
  NEEDS_PROGRAMS,
  async () => {
    const byHand = (await backUp()).body.data.job_id
    events.splice(0)
    // As of two processes at once: one waits, and one fails.
    await Promise.all([run('backup-hourly'), run('backup-hourly')])
    const [failed] = (await t.admin.get('/admin/backups/jobs?status=failed&limit=1')).body.data.jobs
    assert.deepEqual(
      [failed.client_name, failed.label, failed.location, failed.error_message],
      ['shop', 'hourly', null, 'The run before still waits for its turn'],
    )
    assert.deepEqual(events, [['backup_failed', failed.id]])
    const waiting = (await ofSchedule('hourly')).find(({ status }) => status === 'pending')
    const cancelled = await t.admin.post(`/admin/backups/jobs/${waiting?.id}/cancel`)
    assert.equal(cancelled.body.data.status, 'cancelled')
    assert.equal(await drain(), 1)
    assert.equal((await find(byHand)).status, 'completed')
  },
)

test('a run whose client is down is a failed job with its event', NEEDS_PROGRAMS, async () => {
  const down = await testService({
    controlUrl: t.controlUrl,
    config: {
      clients: { shop: { ...clients.shop, url: 'postgres://shop:x@127.0.0.1:1/shop' } },
      backups: { schedules: { down: EVERY_HOUR } },
    },
  })
  const told: unknown[] = []
  down.service.kernel.events.subscribe((name, data) => name === 'backup_failed' && told.push(data))
  await down.service.recurring.find(({ name }) => name === 'backup-down')?.run()
  const [failed, ...more] = await ofSchedule('down')
  assert.deepEqual([failed?.status, failed?.location, more], ['failed', null, []])
  assert.match(failed?.errorMessage ?? '', /database.*(not|cannot)/i)
  assert.equal(told.length, 1)
  await down.stop()
})

test(
  'a run that no process began is a failed job with its event, once the database is back',
  NEEDS_PROGRAMS,
  async () => {
    await look()
    const before = (await ofSchedule('hourly')).length
    // A run that was begun in time is not missed.
    t.advance(61 * MINUTE)
    await run('backup-on-the-hour')
    await drain()
    t.advance(6 * MINUTE)
    events.splice(0)
    await Promise.all([look(), look(), look()])
    const missed = (await ofSchedule('hourly')).slice(before)
    assert.deepEqual(
      missed.map(({ status, clientName, location }) => [status, clientName, location]),
      [['failed', 'shop', null]],
    )
    assert.match(missed[0]?.errorMessage ?? '', /^The run of \d{4}-\d\d-\d\dT\d\d:00Z did not begin: /)
    assert.deepEqual(events, [['backup_failed', missed[0]?.id]])
    await look()
    assert.equal((await ofSchedule('hourly')).length, before + 1)
    assert.ok((await statuses('on-the-hour')).every((status) => status === 'completed'))
    // A day later it is one job, not 24.
    t.advance(24 * 60 * MINUTE)
    await look()
    assert.equal((await ofSchedule('hourly')).length, before + 2)
  },
)

test('retention counts only backups whose files are there', NEEDS_PROGRAMS, async () => {
  const jobs = []
  for (let hour = 0; hour < 3; hour++) {
    await run('backup-hourly')
    await drain()
    jobs.push((await ofSchedule('hourly')).findLast(({ status }) => status === 'completed'))
  }
  const [good, ...gone] = jobs.toReversed().slice(0, 3).toReversed()
  for (const job of gone) await rm(job?.location ?? '')
  await run('backup-hourly')
  assert.equal((await t.admin.get(`/admin/backups/${good?.id}/download`)).status, 200)
  await drain()
})
