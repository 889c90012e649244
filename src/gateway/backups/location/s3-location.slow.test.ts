import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import {
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { eventually } from '#test/embedded.ts'
import { testService } from '#test/harness.ts'
import { WITHOUT_S3 } from '#test/s3/program.ts'
import { startS3Server } from '#test/s3/server.ts'
import { createS3Store, requireBucket } from './s3-store.ts'

const NEEDS = { skip: WITHOUT_S3 || NEEDS_PROGRAMS.skip }
const BUCKET = 'backups'
const location = `s3://${BUCKET}/gatehouse`
const absent = { endpoint: 'http://127.0.0.1:1', region: 'x', access_key_id: 'x', secret_key: 'x' }
const access = WITHOUT_S3 === false ? (await startS3Server({ buckets: [BUCKET] })).access : absent
const { t, clients, onShop, drain, find, queued, done, backUp, restore, cities, holding, isWaiting } =
  await backupService({ location, s3: access })
const store = createS3Store(t.config)
const client = new S3Client({
  endpoint: access.endpoint,
  region: access.region,
  credentials: { accessKeyId: access.access_key_id, secretAccessKey: access.secret_key },
  forcePathStyle: true,
})
const objects = async () => {
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: BUCKET }))
  return Contents.map(({ Key }) => `s3://${BUCKET}/${Key}`)
}
const uploads = async () => {
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }))
  return Uploads.map(({ Key }) => Key)
}
const keyOf = (job: { location: string }) => job.location.slice(`s3://${BUCKET}/`.length)

test('a backup in a bucket is one object, which is downloaded, restored and deleted', NEEDS, async () => {
  await onShop(
    'create table noise as select n, md5(n::text) || md5((n * 7)::text) as text from generate_series(1, 600000) n',
  )
  const before = await cities()
  const job = await done(await backUp())
  assert.deepEqual([job.status, job.error_message], ['completed', null])
  assert.match(job.location, /^s3:\/\/backups\/gatehouse\/shop-\d{8}T\d{6}Z-[0-9a-f-]{36}\.dump$/)
  assert.ok(job.size_bytes > 16 * 1024 * 1024, `one part only: ${job.size_bytes}`)
  assert.deepEqual([await objects(), await uploads()], [[job.location], []])

  const download = await fetch(`${t.url}/admin/backups/${job.id}/download`, { headers: t.admin.headers })
  const bytes = Buffer.from(await download.arrayBuffer())
  const digest = createHash('sha256').update(bytes).digest('base64')
  assert.deepEqual(
    [bytes.length, download.headers.get('repr-digest')],
    [job.size_bytes, `sha-256=:${digest}:`],
  )

  await onShop(`drop table noise; delete from city where id > 10`)
  const restored = await done(await restore(job.id))
  assert.deepEqual([restored.status, restored.error_message], ['completed', null])
  assert.deepEqual(await cities(), before)
  await onShop('drop table noise')

  assert.equal((await t.admin.send('DELETE', `/admin/backups/${job.id}`)).status, 200)
  assert.deepEqual(await objects(), [])
  assert.equal((await t.admin.get(`/admin/backups/jobs/${job.id}`)).status, 404)
})

test('an object that was changed, or is gone, is not restored', NEEDS, async () => {
  const before = await cities()
  const job = await done(await backUp())
  await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: keyOf(job), Body: 'PGDMP of another' }))
  const refused = await done(await restore(job.id))
  assert.deepEqual([refused.status, /SHA-256 differs/.test(refused.error_message)], ['failed', true])
  await client.send(new DeleteObjectCommand({ Bucket: BUCKET, Key: keyOf(job) }))
  const missing = await t.admin.get(`/admin/backups/${job.id}/download`)
  assert.deepEqual([missing.status, missing.body.code], [404, 'backup_file_missing'])
  assert.equal((await done(await restore(job.id))).status, 'failed')
  assert.deepEqual(await cities(), before)
  assert.equal((await t.admin.send('DELETE', `/admin/backups/${job.id}`)).status, 200)
})

test('a cancelled job leaves no object and no open upload', NEEDS, async () => {
  const id = queued(await backUp())
  let running: Promise<number> | undefined
  await holding('access exclusive', async () => {
    running = drain()
    await eventually(isWaiting)
    assert.equal((await uploads()).length, 1)
    assert.equal((await t.admin.post(`/admin/backups/jobs/${id}/cancel`)).status, 200)
    await running
  })
  assert.equal((await find(id)).status, 'cancelled')
  assert.deepEqual([await objects(), await uploads()], [[], []])
})

test(
  'an upload that is aborted between its parts leaves nothing, and neither does that of a killed process',
  NEEDS,
  async () => {
    const abandoned = new AbortController()
    async function* source() {
      for (let sent = 0; sent < 20; sent++) yield Buffer.alloc(1024 * 1024, sent)
      assert.equal((await uploads()).length, 1)
      abandoned.abort(new Error('enough'))
      for (let sent = 0; sent < 20; sent++) yield Buffer.alloc(1024 * 1024, sent)
    }
    await assert.rejects(store.write(`${location}/half.dump`, source(), abandoned.signal), /enough/)
    assert.deepEqual([await objects(), await uploads()], [[], []])

    const target = { Bucket: BUCKET, Key: 'gatehouse/killed.dump' }
    await client.send(new CreateMultipartUploadCommand(target))
    await client.send(new CreateMultipartUploadCommand({ ...target, Key: `${target.Key}.other` }))
    await store.discard(`${location}/killed.dump`)
    assert.deepEqual(await uploads(), [`${target.Key}.other`])
    await store.discard(`${location}/killed.dump.other`)
  },
)

test('a schedule keeps its newest backups in the bucket', NEEDS, async () => {
  const nightly = t.service.recurring.find(({ name }) => name === 'backup-nightly')
  for (let night = 0; night < 3; night++) {
    await nightly?.run()
    await drain()
  }
  assert.equal((await objects()).length, 2)
  await nightly?.run()
  assert.equal((await objects()).length, 1)
  await drain()
  for (const { id } of (await t.admin.get('/admin/backups/jobs?job_type=backup')).body.data.jobs)
    await t.admin.send('DELETE', `/admin/backups/${id}`)
  assert.deepEqual(await objects(), [])
})

test(
  'wrong credentials, a missing bucket and a silent server are sentences without the secret',
  NEEDS,
  async () => {
    const kept = await done(await backUp())
    for (const [backups, says] of [
      [{ location, s3: { ...access, secret_key: 'wrong-secret-of-s3' } }, /refuses the access key/],
      [{ location: 's3://no-such-bucket', s3: access }, /bucket of the backups does not exist/],
      [{ location, s3: { ...access, endpoint: 'http://127.0.0.1:1' } }, /cannot be used \(ECONNREFUSED\)/],
    ] as const) {
      const other = await testService({ controlUrl: t.controlUrl, config: { clients, backups } })
      const asked = await other.admin.post('/admin/backups', { client_name: 'shop' })
      assert.equal(asked.status, 202, asked.text)
      await other.service.kernel.jobs.drain(other.service.handlers)
      const job = await find(asked.body.data.job_id)
      assert.equal(job.status, 'failed')
      assert.match(job.error_message, says)
      await assert.rejects(requireBucket(other.config), says)
      if (!backups.location.includes('no-such')) {
        const refused = await other.admin.send('DELETE', `/admin/backups/${kept.id}`)
        assert.deepEqual([refused.status, refused.body.code], [503, 'backup_store_unavailable'])
        assert.equal((await find(kept.id)).status, 'completed')
      }
      const told = JSON.stringify([job, other.log])
      for (const secret of ['wrong-secret-of-s3', access.secret_key]) assert.ok(!told.includes(secret))
      await other.stop()
    }
    await requireBucket(t.config)
  },
)
