import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { promisify } from 'node:util'
import pg from 'pg'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { eventually } from '#test/embedded.ts'
import { type Answer, testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

/** An object that is genuine when it is read for the first time; the `later` reads are a server's that fails or is an attacker's. */
const object = { bytes: Buffer.alloc(0), size: 0, reads: 0, later: (_response: ServerResponse) => {} }
const bucket = await startLoopbackServer((request, response) => {
  if (request.method === 'HEAD') response.setHeader('content-length', object.size).end()
  else if (object.reads++ === 0) response.writeHead(206).end(object.bytes)
  else object.later(response)
})

const { t, shopUrl, clients, onShop, events, drain, queued, done, find, backUp, restore, cities } =
  await backupService({
    s3: { endpoint: bucket.url, region: 'x', access_key_id: 'x', secret_key: 'x' },
  })
const { db, now, coherence } = t.service.kernel
const endLost = () => t.service.recurring.find(({ name }) => name === 'fail-lost-backups')?.run()
const announced: string[] = []
coherence.subscribe({ apply: (tag) => announced.push(tag), clear: () => {} })

test(
  'when the backup cannot be read to its end, pg_restore ends before the job does',
  NEEDS_PROGRAMS,
  async () => {
    const job = await done(await backUp())
    await keepInBucket(job, (response) => response.writeHead(500).end())
    const failed = await done(await restore(job.id))
    assert.deepEqual(
      [failed.status, /object storage.*500/.test(failed.error_message)],
      ['failed', true],
      failed.error_message,
    )
    assert.deepEqual(await restoring(), [])
  },
)

test(
  'an object that is another one when it is read again gives pg_restore nothing',
  NEEDS_PROGRAMS,
  async () => {
    await onShop(`update city set name = 'of another'`)
    const other = await readFile((await done(await backUp())).location)
    await onShop(
      `update city set name = 'city'; create table noise as select n, md5(n::text) from generate_series(1, 60000) n`,
    )
    const job = await done(await backUp())
    // A whole dump and zeros, which pg_restore would not read before its commit.
    await keepInBucket(job, (response) =>
      response.writeHead(206).end(Buffer.concat([other, Buffer.alloc(job.size_bytes - other.length)])),
    )
    const refused = await done(await restore(job.id))
    assert.deepEqual(
      [refused.status, /SHA-256 differs/.test(refused.error_message)],
      ['failed', true],
      refused.error_message,
    )
    assert.deepEqual((await onShop('select distinct name from city')).rows, [{ name: 'city' }])
    await onShop('drop table noise')
  },
)

test(
  'an object that never ends fails the restore, and one that does not arrive is given up when it is cancelled',
  NEEDS_PROGRAMS,
  async () => {
    const job = await done(await backUp())
    let sent = 0
    await keepInBucket(job, (response) => {
      const piece = Buffer.alloc(1_048_576)
      const pour = () => {
        while (!response.destroyed && sent < 500 && response.write(piece)) sent++
      }
      response.writeHead(206).on('drain', pour)
      pour()
    })
    assert.equal((await done(await restore(job.id))).status, 'failed')
    assert.ok(sent < 100, `${sent} MiB were taken`)

    object.size = Number.MAX_SAFE_INTEGER
    object.reads = 0
    const refused = await done(await restore(job.id))
    assert.deepEqual(
      [/its length or its SHA-256 differs/.test(refused.error_message), object.reads],
      [true, 0],
    )

    await keepInBucket(job, (response) => response.writeHead(206).write('PGDMP'))
    const id = queued(await restore(job.id))
    const running = drain()
    await eventually(async () => object.reads === 2)
    assert.equal((await t.admin.post(`/admin/backups/jobs/${id}/cancel`)).status, 200)
    await running
    assert.equal((await find(id)).status, 'cancelled')
  },
)

test(
  'a restore whose process was killed ends as its transaction did, and only then is the client thawed',
  NEEDS_PROGRAMS,
  async () => {
    await onShop(`create table service_idempotency (key text primary key)`)
    const before = await cities()
    const backup = await done(await backUp())
    await onShop('delete from city where id > 10')
    const restored = await done(await restore(backup.id))
    const { transactionId: committed } = await db
      .selectFrom('backupJob')
      .select('transactionId')
      .where('id', '=', restored.id)
      .executeTakeFirstOrThrow()
    assert.match(committed ?? '', /^\d+$/)
    const open = new pg.Client({ connectionString: shopUrl })
    await open.connect()
    await open.query('begin')
    const { rows } = await open.query('select pg_current_xact_id()::text as id')
    const aborted: string = rows[0].id
    const key = await t.key(['*'], { client_name: 'shop' })
    const headers = { headers: { 'x-service-client': 'shop' } }
    const insert = (id: number) =>
      key.post('/gateway/insert', { table_name: 'city', insert_body: { id, name: 'new' } }, headers)

    await killed(restored.id, aborted)
    await endLost()
    assert.equal((await find(restored.id)).status, 'running')
    assert.equal((await insert(5_001)).status, 403)
    await open.end()

    for (const [transactionId, status, says, keys] of [
      [committed, 'completed', null, false],
      [aborted, 'failed', /process that ran the job ended/, true],
      [null, 'failed', /process that ran the job ended/, true],
      ['unknown', 'failed', /unknown whether the data was replaced/, false],
      ['99999999999', 'failed', /unknown whether the data was replaced/, false],
    ] as const) {
      await onShop(`create table if not exists service_idempotency (key text)`)
      await killed(restored.id, transactionId)
      assert.equal((await insert(5_001)).status, 403)
      events.splice(0)
      announced.splice(0)
      await Promise.all([endLost(), endLost(), endLost()])
      const job = await find(restored.id)
      assert.deepEqual([job.status, job.completed_at === null], [status, false], String(transactionId))
      if (says === null) assert.equal(job.error_message, null)
      else assert.match(job.error_message, says)
      assert.deepEqual(events, [[status === 'completed' ? 'backup_completed' : 'backup_failed', restored.id]])
      assert.equal(await hasKeys(), keys, String(transactionId))
      assert.equal(
        announced.some((tag) => tag.startsWith('structure:')),
        !keys,
      )
      assert.equal((await insert(5_001)).status, 200)
      await onShop('delete from city where id = 5001')
    }
    assert.deepEqual(await cities(), before)
  },
)

test('the next start ends a restore whose process was killed', NEEDS_PROGRAMS, async () => {
  const { id } = await done(await backUp())
  const restored = await done(await restore(id))
  await killed(restored.id, null)
  const next = await testService({ controlUrl: t.controlUrl, config: { clients } })
  await next.service.work()
  await eventually(async () => (await find(restored.id)).status === 'failed')
  await next.stop()
})

test('a restore whose data was replaced says so when it fails afterwards', NEEDS_PROGRAMS, async () => {
  const before = await cities()
  const backup = await done(await backUp())
  await onShop(`create table service_idempotency (key text); create extension citext;
    alter extension citext add table service_idempotency; delete from city where id > 10`)
  const failed = await done(await restore(backup.id))
  assert.deepEqual(
    [failed.status, /^The data was replaced, but/.test(failed.error_message)],
    ['failed', true],
  )
  assert.deepEqual(await cities(), before)
  await onShop('drop extension citext')
})

const hasKeys = async () =>
  (await onShop(`select to_regclass('public.service_idempotency') is not null as keys`)).rows[0].keys

/** Moves a backup into the bucket. */
async function keepInBucket(
  job: { id: string; location: string },
  later: typeof object.later,
): Promise<void> {
  if (!job.location.startsWith('s3://')) object.bytes = await readFile(job.location)
  Object.assign(object, { size: object.bytes.length, reads: 0, later })
  const location = 's3://bucket/shop.dump'
  job.location = location
  await db.updateTable('backupJob').set({ location }).where('id', '=', job.id).execute()
}

/** The row of a restore as its process has left it. */
async function killed(id: string, transactionId: string | null | undefined): Promise<void> {
  await db
    .updateTable('backupJob')
    .set({
      status: 'running',
      completedAt: null,
      errorMessage: null,
      transactionId: transactionId ?? null,
      leaseUntil: new Date(now().getTime() - 1_000),
    })
    .where('id', '=', id)
    .execute()
  await coherence.settle()
}

/** Command lines of the children of this process that run pg_restore. */
async function restoring(): Promise<readonly string[]> {
  const tasks = await readdir('/proc/self/task')
  const children = await Promise.all(
    tasks.map((task) => readFile(`/proc/self/task/${task}/children`, 'latin1')),
  )
  const pids = children.flatMap((list) => list.split(' ').filter((pid) => pid !== ''))
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')),
  )
  return lines.filter((line) => line.includes('pg_restore'))
}

test(
  'a download is the file that was written, or is refused: another length would be read as other answers',
  NEEDS_PROGRAMS,
  async () => {
    const job = await done(await backUp())
    const { location, size_bytes: size } = job
    const refusal = ({ status, body }: Answer) => [status, body.code]
    const download = () => t.admin.get(`/admin/backups/${job.id}/download`)
    const bytes = await readFile(location)
    for (const changed of [Buffer.concat([bytes, Buffer.from('HTTP/1.1')]), bytes.subarray(0, -1)]) {
      await writeFile(location, changed)
      assert.deepEqual(refusal(await download()), [409, 'backup_file_changed'])
    }
    await writeFile(`${location}.kept`, bytes)
    for (const put of [
      () => symlink(`${location}.kept`, location),
      () => mkdir(location),
      // Opening it waits for a writer.
      () => promisify(execFile)('mkfifo', [location]),
    ]) {
      await rm(location, { recursive: true })
      await put()
      assert.deepEqual(refusal(await download()), [404, 'backup_file_missing'])
    }
    const restored = await done(await restore(job.id))
    assert.deepEqual(
      [restored.status, /does not exist any more/.test(restored.error_message)],
      ['failed', true],
    )
    await rm(location)
    await rename(`${location}.kept`, location)
    assert.deepEqual([(await download()).status, bytes.length], [200, size])
  },
)

test(
  'a job that ends without a backup leaves the file that another backup has written there',
  NEEDS_PROGRAMS,
  async () => {
    const { id, location } = await done(await backUp())
    const killed = {
      ...(await db.selectFrom('backupJob').selectAll().where('id', '=', id).executeTakeFirstOrThrow()),
    }
    const lost = {
      ...killed,
      id: uuidv7(now(), secureRandom),
      clientName: 'other',
      status: 'running',
      completedAt: null,
    }
    await db
      .insertInto('backupJob')
      .values({ ...lost, leaseUntil: new Date(now().getTime() - 1_000) })
      .execute()
    await endLost()
    assert.equal((await find(lost.id)).status, 'failed')
    assert.equal((await readFile(location)).length > 0, true)
  },
)
