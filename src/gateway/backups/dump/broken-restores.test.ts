import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

/** An object whose server fails when it is read for the second time. */
const failing = { bytes: Buffer.alloc(0), reads: 0 }
const bucket = await startLoopbackServer((request, response) => {
  if (request.method === 'HEAD') response.setHeader('content-length', failing.bytes.length).end()
  else if (failing.reads++ === 0) response.writeHead(206).end(failing.bytes)
  else response.writeHead(500).end()
})

const { t, done, backUp, restore } = await backupService({
  s3: { endpoint: bucket.url, region: 'x', access_key_id: 'x', secret_key: 'x' },
})
const { db } = t.service.kernel

test(
  'when the backup cannot be read to its end, pg_restore ends before the job does',
  NEEDS_PROGRAMS,
  async () => {
    const job = await done(await backUp())
    failing.bytes = await readFile(job.location)
    await db
      .updateTable('backupJob')
      .set({ location: 's3://bucket/shop.dump' })
      .where('id', '=', job.id)
      .execute()
    const failed = await done(await restore(job.id))
    assert.deepEqual(
      [failed.status, /object storage.*500/.test(failed.error_message)],
      ['failed', true],
      failed.error_message,
    )
    assert.deepEqual(await restoring(), [])
  },
)

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
