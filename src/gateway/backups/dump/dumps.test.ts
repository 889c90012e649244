import assert from 'node:assert/strict'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { eventually } from '#test/embedded.ts'
import { type Answer, testService } from '#test/harness.ts'

const {
  t,
  shopUrl,
  clients,
  onShop,
  events,
  drain,
  find,
  queued,
  done,
  backUp,
  restore,
  cities,
  holding,
  isWaiting,
} = await backupService()
const { kernel } = t.service
const refusal = ({ status, body }: Answer) => [status, body.code]
const folder = path.join(t.config.server.data_dir, 'backups')
const acts = async (id: string) => {
  const rows = await kernel.db
    .selectFrom('auditEvent')
    .select(['action', 'actorId'])
    .where('targetId', '=', id)
    .execute()
  return rows.map(({ action, actorId }) => `${action} ${actorId}`)
}

test(
  'a backup is one file for the service alone, and a restore brings back all of its rows',
  NEEDS_PROGRAMS,
  async () => {
    const before = await cities()
    await onShop(`create table service_idempotency (key text primary key, body text, answer text, created_at timestamptz);
    insert into service_idempotency values ('k', '', '', now())`)
    const job = await done(await backUp())
    assert.deepEqual(
      [job.status, job.client_name, job.label, job.progress_pct, job.error_message],
      ['completed', 'shop', 'by hand', 100, null],
    )
    const file = await stat(job.location)
    assert.deepEqual([file.mode & 0o777, file.size], [0o600, job.size_bytes])
    assert.deepEqual(await readdir(folder), [path.basename(job.location)])
    await onShop(
      `delete from city where id > 10; update city set name = 'changed'; insert into service_idempotency values ('later')`,
    )
    const key = await t.key(['*'], { client_name: 'shop' })
    const read = () =>
      key.post(
        '/gateway/fetch',
        { table_name: 'city', limit: 1, count: 'exact' },
        { headers: { 'x-service-client': 'shop' } },
      )
    assert.equal((await read()).body.count, 10)
    const restored = await done(await restore(job.id))
    assert.deepEqual(
      [restored.job_type, restored.status, restored.error_message],
      ['restore', 'completed', null],
    )
    assert.deepEqual(await cities(), before)
    assert.equal((await read()).body.count, 1000)
    await assert.rejects(onShop('table service_idempotency'), { code: '42P01' })
    assert.deepEqual(
      events.splice(0),
      [job.id, restored.id].flatMap((id) => [
        ['backup_started', id],
        ['backup_completed', id],
      ]),
    )
    assert.deepEqual(await acts(job.id), ['backup.requested admin-key'])
    assert.deepEqual(await acts(restored.id), ['restore.requested admin-key'])

    const download = await t.admin.get(`/admin/backups/${job.id}/download`)
    assert.equal(download.headers.get('content-length'), String(job.size_bytes))
    assert.match(
      download.headers.get('content-disposition') ?? '',
      /^attachment; filename="shop-\d{8}T\d{6}Z-[0-9a-f-]{36}\.dump"$/,
    )
    assert.ok(download.text.startsWith('PGDMP'))
    assert.deepEqual(await acts(job.id), ['backup.requested admin-key', 'backup.downloaded admin-key'])

    const listed = await t.admin.get('/admin/backups/jobs?client_name=shop&job_type=restore&limit=1')
    assert.deepEqual([listed.body.data.total, listed.body.data.jobs[0].id], [1, restored.id])
    assert.equal((await t.admin.get('/admin/backups/jobs?status=failed')).body.data.total, 0)

    assert.equal((await t.admin.send('DELETE', `/admin/backups/${job.id}`)).status, 200)
    assert.deepEqual(await readdir(folder), [])
    assert.equal((await t.admin.get(`/admin/backups/jobs/${job.id}`)).status, 404)
    assert.equal((await find(restored.id)).status, 'completed')
  },
)

test(
  'while a restore runs, all clients of the database refuse writes, and the password is in no command line',
  NEEDS_PROGRAMS,
  async () => {
    const job = await done(await backUp())
    const key = await t.key(['*'], { client_name: 'shop' })
    const headers = { headers: { 'x-service-client': 'shop' } }
    const insert = (id: number) =>
      key.post('/gateway/insert', { table_name: 'city', insert_body: { id, name: 'new' } }, headers)
    const sql = (query: string) => key.post('/gateway/query', { query }, headers)
    const registered = await t.admin.post('/admin/clients', { client_name: 'branch', url: shopUrl })
    assert.equal(registered.status, 201, registered.text)
    const other = await t.key(['*'], { client_name: 'branch' })
    const insertByOther = (id: number) =>
      other.post(
        '/gateway/insert',
        { table_name: 'city', insert_body: { id, name: 'new' } },
        { headers: { 'x-service-client': 'branch' } },
      )
    const elsewhere = await t.key(['*'])
    const id = queued(await restore(job.id))
    let running: Promise<number> | undefined
    await holding('access share', async () => {
      running = drain()
      await eventually(isWaiting)
      assert.deepEqual(refusal(await insert(5_001)), [403, 'client_frozen'])
      const refused = await insertByOther(5_002)
      assert.deepEqual(refusal(refused), [403, 'client_frozen'])
      assert.match(refused.text, /A restore replaces the data of this client.*jobs\?job_type=restore/)
      const free = await elsewhere.post('/gateway/query', { query: 'create table free (id int)' })
      assert.equal(free.status, 200, free.text)
      assert.match((await sql('delete from city')).body.message, /^A restore replaces/)
      assert.equal((await sql('select 1 as one')).status, 200)
      const lines = await Promise.all(
        (await readdir('/proc'))
          .filter((name) => /^\d+$/.test(name))
          .map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')),
      )
      const restoring = lines.filter((line) => line.includes('pg_restore'))
      assert.ok(restoring.length > 0)
      assert.doesNotMatch(restoring.join('\n'), new RegExp(new URL(shopUrl).password))
    })
    await running
    assert.equal((await find(id)).status, 'completed')
    assert.equal((await insert(5_001)).status, 200)
    assert.equal((await insertByOther(5_002)).status, 200)
    await onShop('delete from city where id > 5000')
  },
)

test(
  'a running job is cancelled: its program ends, nothing is changed, and no file is left',
  NEEDS_PROGRAMS,
  async () => {
    const first = await done(await backUp())
    const before = await cities()
    for (const begin of [backUp, () => restore(first.id)]) {
      events.splice(0)
      const id = queued(await begin())
      assert.deepEqual(refusal(await backUp()), [409, 'backup_job_active'])
      let running: Promise<number> | undefined
      await holding('access exclusive', async () => {
        running = drain()
        await eventually(isWaiting)
        assert.deepEqual(refusal(await t.admin.send('DELETE', `/admin/backups/${id}`)), [
          409,
          'backup_in_use',
        ])
        // A restore reads it.
        if (begin !== backUp)
          assert.deepEqual(refusal(await t.admin.send('DELETE', `/admin/backups/${first.id}`)), [
            409,
            'backup_in_use',
          ])
        const cancelled = await t.admin.post(`/admin/backups/jobs/${id}/cancel`)
        assert.deepEqual([cancelled.status, cancelled.body.data.status], [200, 'running'])
        await running
      })
      const job = await find(id)
      assert.deepEqual([job.status, job.error_message], ['cancelled', 'Cancelled by the operator.'])
      assert.deepEqual(
        events.map(([name]) => name),
        ['backup_started', 'backup_failed'],
      )
      assert.equal(await isWaiting(), false)
      assert.deepEqual(refusal(await t.admin.post(`/admin/backups/jobs/${id}/cancel`)), [
        409,
        'backup_job_ended',
      ])
      assert.deepEqual(await acts(id), [
        `${begin === backUp ? 'backup' : 'restore'}.requested admin-key`,
        'backup.cancelled admin-key',
      ])
    }
    assert.deepEqual(await cities(), before)
  },
)

test('a job that waits is cancelled at once, and is not run', NEEDS_PROGRAMS, async () => {
  const id = queued(await backUp())
  const cancelled = await t.admin.post(`/admin/backups/jobs/${id}/cancel`)
  assert.equal(cancelled.body.data.status, 'cancelled')
  events.splice(0)
  await drain()
  assert.equal((await find(id)).status, 'cancelled')
  assert.deepEqual(events, [])
})

test(
  'a job whose process was killed fails when its lease ends, and its file goes',
  NEEDS_PROGRAMS,
  async () => {
    const look = t.service.recurring.find(({ name }) => name === 'fail-lost-backups')?.run ?? assert.fail()
    // A lease of a day was written before the clock of the database was set back.
    for (const lease of [30_000, 86_400_000]) {
      const id = queued(await backUp())
      const { location } = await find(id)
      await writeFile(`${location}.part`, 'half')
      const leaseUntil = new Date(kernel.now().getTime() + lease)
      await kernel.db
        .updateTable('backupJob')
        .set({ status: 'running', leaseUntil })
        .where('id', '=', id)
        .execute()
      if (lease === 30_000) {
        await look()
        assert.equal((await find(id)).status, 'running')
        t.advance(31_000)
      }
      events.splice(0)
      await look()
      const job = await find(id)
      assert.deepEqual(
        [job.status, /process that ran the job ended/.test(job.error_message)],
        ['failed', true],
      )
      assert.deepEqual(events, [['backup_failed', id]])
      await assert.rejects(stat(`${location}.part`))
      await drain()
    }
  },
)

test('requests that cannot work are refused before a job exists', NEEDS_PROGRAMS, async () => {
  const { total } = (await t.admin.get('/admin/backups/jobs')).body.data
  assert.deepEqual(refusal(await backUp('nobody')), [400, 'unknown_client'])
  assert.deepEqual(refusal(await backUp('project')), [400, 'unsupported_by_driver'])
  const absent = '01a203cd-ff7f-7487-9312-fc8ac2b56845'
  assert.deepEqual(refusal(await restore(absent)), [404, 'backup_not_found'])
  const job = await done(await backUp())
  for (const confirm of ['default', '', false])
    assert.deepEqual(refusal(await restore(job.id, { client_name: 'shop', confirm })), [
      400,
      'restore_not_confirmed',
    ])
  for (const confirm of ['nobody', true])
    assert.deepEqual(refusal(await restore(job.id, { client_name: 'nobody', confirm })), [
      400,
      'unknown_client',
    ])
  await kernel.db.updateTable('backupJob').set({ format: 'archive' }).where('id', '=', job.id).execute()
  assert.deepEqual(refusal(await restore(job.id)), [400, 'restore_needs_command'])
  assert.equal((await t.admin.get('/admin/backups/jobs')).body.data.total, total + 1)
  for (const path of [`/admin/backups/${absent}/download`, `/admin/backups/jobs/${absent}`])
    assert.deepEqual(refusal(await t.admin.get(path)), [404, 'backup_not_found'])
  assert.equal((await t.admin.get('/admin/backups/jobs?limit=501')).status, 400)
})

test('only the admin key reaches backups', async () => {
  const key = await t.key(['*'])
  const id = '01a203cd-ff7f-7487-9312-fc8ac2b56845'
  const routes = t.service.book.entries().filter(({ path }) => path.startsWith('/admin/backups'))
  assert.equal(routes.length, 7)
  for (const { method, path } of routes) {
    const body = method === 'POST' ? { body: {} } : {}
    assert.deepEqual(refusal(await key.send(method, path.replace('{id}', id), body)), [
      403,
      'insufficient_rights',
    ])
    assert.deepEqual(refusal(await t.anon.send(method, path.replace('{id}', id), body)), [
      401,
      'api_key_required',
    ])
  }
})

test('a missing or too old program, and a disk with too little room, are told', NEEDS_PROGRAMS, async () => {
  const poor = await testService({
    controlUrl: t.controlUrl,
    config: { clients, backups: { programs: '/nonexistent' } },
  })
  const refused = await poor.admin.post('/admin/backups', { client_name: 'shop' })
  assert.deepEqual([refused.status, refused.body.code], [503, 'backup_program_missing'])
  assert.match(refused.body.message, /pg_dump is not installed/)
  assert.match(refused.body.error, /postgresql-client-\d+/)
  // The control server of the tests is newer than the installed programs.
  const older = await t.admin.post('/admin/backups', { client_name: 'default' })
  if (older.status !== 202) assert.match(older.body.message, /pg_dump \d+ .* is older than the server/)
  await poor.stop()
})
