import assert from 'node:assert/strict'
import { appendFile, copyFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { sql } from 'kysely'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { type Answer, testService } from '#test/harness.ts'

const { t, clients, onShop, events, drain, done, backUp, restore, cities } = await backupService()
const { kernel } = t.service
const refusal = ({ status, body }: Answer) => [status, body.code]

test('of many requests at once one is taken, and of many processes one runs it', NEEDS_PROGRAMS, async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => backUp()))
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [202, 409, 409, 409, 409, 409, 409, 409])
  events.splice(0)
  const id = answers.find(({ status }) => status === 202)?.body.data.job_id
  const run = t.service.handlers['run-backup']
  await Promise.all(Array.from({ length: 4 }, () => run({ job: id }, '')))
  assert.deepEqual(
    events.map(([name]) => name),
    ['backup_started', 'backup_completed'],
  )
  await drain()
})

test('a file that was changed, or is gone, is not restored', NEEDS_PROGRAMS, async () => {
  const before = await cities()
  const job = await done(await backUp())
  await appendFile(job.location, 'x')
  const refused = await done(await restore(job.id))
  assert.deepEqual([refused.status, /SHA-256 differs/.test(refused.error_message)], ['failed', true])
  await rm(job.location)
  assert.equal((await done(await restore(job.id))).status, 'failed')
  assert.deepEqual(refusal(await t.admin.get(`/admin/backups/${job.id}/download`)), [
    404,
    'backup_file_missing',
  ])
  assert.deepEqual(await cities(), before)
})

test(
  'a restore that fails in the middle changes nothing, and its message has no password',
  NEEDS_PROGRAMS,
  async () => {
    const job = await done(await backUp())
    await onShop('create view names as select name from city')
    const failed = await done(await restore(job.id))
    assert.equal(failed.status, 'failed')
    assert.match(failed.error_message, /cannot drop table (public\.)?city because other objects depend on it/)
    assert.equal((await onShop('select from names')).rowCount, 1000)
    await onShop('drop view names')
  },
)

test('a schedule keeps its newest backups', NEEDS_PROGRAMS, async () => {
  const nightly = t.service.recurring.find(({ name }) => name === 'backup-nightly')
  assert.equal(nightly && 'cron' in nightly && nightly.cron, '30 3 * * *')
  const ofSchedule = () =>
    kernel.db.selectFrom('backupJob').selectAll().where('schedule', '=', 'nightly').execute()
  for (let night = 0; night < 3; night++) {
    await nightly?.run()
    assert.equal((await ofSchedule()).filter(({ status }) => status === 'pending').length, 1)
    await drain()
  }
  await nightly?.run()
  const jobs = await ofSchedule()
  assert.deepEqual(jobs.map(({ status }) => status).toSorted(), ['completed', 'pending'])
  await drain()
})

test('a download breaks off when its backup is deleted', NEEDS_PROGRAMS, async () => {
  await onShop(
    `create table noise as select n, md5(n::text) || md5((n * 7)::text) as text from generate_series(1, 400000) n`,
  )
  const job = await done(await backUp())
  await onShop('drop table noise')
  const response = await fetch(`${t.url}/admin/backups/${job.id}/download`, { headers: t.admin.headers })
  const reader = response.body?.getReader()
  await reader?.read()
  assert.equal((await t.admin.send('DELETE', `/admin/backups/${job.id}`)).status, 200)
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  await assert.rejects(async () => {
    while ((await reader?.read())?.done === false);
  })
})

test('a job whose process has died fails with its event, or not yet', NEEDS_PROGRAMS, async () => {
  const { body } = await t.admin.post(
    '/admin/webhooks',
    { route_key: 'backup_failed', url: 'https://hooks.example/' },
    { headers: { 'x-service-client': 'shop' } },
  )
  assert.equal(body.status, 'success', JSON.stringify(body))
  const answer = await backUp()
  const id = answer.body.data.job_id
  const dead = { status: 'running', leaseUntil: new Date(kernel.now().getTime() - 1_000) }
  await kernel.db.updateTable('backupJob').set(dead).where('id', '=', id).execute()
  const look = t.service.recurring.find(({ name }) => name === 'fail-lost-backups')
  const rename = (from: string, to: string) =>
    sql`alter table ${sql.table(`service.${from}`)} rename to ${sql.ref(to)}`.execute(kernel.db)
  const statusOf = async () => (await t.admin.get(`/admin/backups/jobs/${id}`)).body.data.status
  await rename('webhook_event', 'gone')
  await assert.rejects(async () => look?.run())
  await rename('gone', 'webhook_event')
  assert.equal(await statusOf(), 'running')
  await look?.run()
  assert.equal(await statusOf(), 'failed')
  const written = await kernel.db
    .selectFrom('webhookEvent')
    .select('body')
    .where('routeKey', '=', 'backup_failed')
    .execute()
  assert.deepEqual(
    written.map(({ body }) => JSON.parse(body).data.job_id),
    [id],
  )
  await drain()
})

const lookForLost = () => t.service.recurring.find(({ name }) => name === 'fail-lost-backups')?.run()
const nightly = () => t.service.recurring.find(({ name }) => name === 'backup-nightly')?.run()
const relocate = (id: string, location: string) =>
  kernel.db.updateTable('backupJob').set({ location }).where('id', '=', id).execute()

test(
  'a job that was taken from the queue by a process that died is queued again',
  NEEDS_PROGRAMS,
  async () => {
    const { job_id: id } = (await backUp()).body.data
    await sql`delete from service_jobs.job where name = 'run-backup'`.execute(kernel.db)
    await lookForLost()
    assert.equal(await drain(), 0)
    t.advance(61_000)
    await Promise.all([lookForLost(), lookForLost()])
    await drain()
    assert.equal((await t.admin.get(`/admin/backups/jobs/${id}`)).body.data.status, 'completed')
    await lookForLost()
    assert.equal(await drain(), 0)
  },
)

test('a schedule makes its backup although an old one cannot be removed', NEEDS_PROGRAMS, async () => {
  const ofSchedule = () =>
    kernel.db.selectFrom('backupJob').selectAll().where('schedule', '=', 'nightly').execute()
  for (let night = 0; night < 2; night++) {
    await nightly()
    assert.equal(await drain(), 1)
  }
  const before = await ofSchedule()
  const oldest = before.map(({ id }) => id).toSorted()[0] ?? ''
  const file = path.join(t.config.server.data_dir, 'a-file')
  await writeFile(file, '')
  await relocate(oldest, path.join(file, 'x.dump'))
  await nightly()
  await drain()
  const after = await ofSchedule()
  assert.equal(after.length, before.length + 1)
  assert.ok(t.log.some((record) => JSON.stringify(record).includes('backup_kept')))
  await relocate(oldest, path.join(t.config.server.data_dir, 'gone.dump'))
  await nightly()
  await drain()
  assert.ok(
    (await ofSchedule()).every(({ id }) => id !== oldest),
    'a file that is gone keeps its job',
  )
})

test('any label and any file name may be downloaded', NEEDS_PROGRAMS, async () => {
  const label = '../..\r\nx-evil: 1 "\u202e'
  const job = await done(await t.admin.post('/admin/backups', { client_name: 'shop', label }))
  assert.deepEqual([job.status, job.label], ['completed', label])
  assert.match(path.basename(job.location), /^shop-[\w-]+\.dump$/)
  const refused = await t.admin.post('/admin/backups', { client_name: 'shop', label: 'a\u0000b' })
  assert.equal(refused.status, 400, refused.text)
  const named = path.join(t.config.server.data_dir, 'ü"\r\n;x.dump')
  await copyFile(job.location, named)
  await relocate(job.id, named)
  const download = await t.admin.get(`/admin/backups/${job.id}/download`)
  assert.equal(download.status, 200, download.text)
  assert.equal(download.headers.get('content-disposition'), 'attachment; filename="_____x.dump"')
})

test('a folder that cannot be written fails the job with a sentence', NEEDS_PROGRAMS, async () => {
  const file = path.join(t.config.server.data_dir, 'no-folder')
  await writeFile(file, '')
  const other = await testService({
    controlUrl: t.controlUrl,
    config: { clients, backups: { location: path.join(file, 'backups') } },
  })
  const { job_id: id } = (await other.admin.post('/admin/backups', { client_name: 'shop' })).body.data
  await other.service.kernel.jobs.drain(other.service.handlers)
  const { status, error_message } = (await t.admin.get(`/admin/backups/jobs/${id}`)).body.data
  assert.deepEqual(
    [status, error_message],
    ['failed', 'A file of the backup cannot be used (mkdir: ENOTDIR).'],
  )
  await other.stop()
})
