import assert from 'node:assert/strict'
import { readFile, rm } from 'node:fs/promises'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import type { Answer } from '#test/harness.ts'
import { startProxy } from '#test/hostile/proxy.ts'

const { t, shopUrl, done, find, drain, backUp, restore } = await backupService()

test(
  'a backup that is deleted while its restore is requested is kept, or the restore is refused',
  NEEDS_PROGRAMS,
  async () => {
    for (const pause of [0, 15]) {
      const { id } = await done(await backUp())
      const requested = restore(id)
      await sleep(pause)
      const deleted = await t.admin.send('DELETE', `/admin/backups/${id}`)
      const ends = [deleted.status, deleted.body.code, (await requested).status, (await requested).body.code]
      if (deleted.status === 200) assert.deepEqual(ends, [200, undefined, 404, 'backup_not_found'])
      else {
        assert.deepEqual(ends, [409, 'backup_in_use', 202, undefined])
        assert.equal((await done(await requested)).status, 'completed')
      }
    }
  },
)

/** Holds transactions at their entry in the audit trail until `waiting` of them wait there, and `later` has ended. */
async function atTheAuditTrail(waiting: number, work: () => void, later = async () => {}): Promise<void> {
  await withClient(t.controlUrl, async (client) => {
    await client.query('begin; lock table service.audit_event in exclusive mode')
    work()
    const waiters = `select from ${OWN_LOCKS} where not granted and relation = 'service.audit_event'::regclass`
    while (((await client.query(waiters)).rowCount ?? 0) < waiting) await sleep(10)
    await later()
    await client.query('commit')
  })
}

test('a restore that is not committed yet keeps its backup from being deleted', NEEDS_PROGRAMS, async () => {
  const { id } = await done(await backUp())
  const answers: Promise<Answer>[] = []
  const ask = () => void answers.push(restore(id))
  await atTheAuditTrail(1, ask, async () => {
    answers.push(t.admin.send('DELETE', `/admin/backups/${id}`))
    await sleep(100)
  })
  const [requested, deleted] = await Promise.all(answers)
  assert.ok(requested && deleted)
  assert.deepEqual([deleted.status, deleted.body.code], [409, 'backup_in_use'])
  assert.equal((await done(requested)).status, 'completed')
})

test(
  'of a client that is removed when a backup of it is requested, no job waits, whichever comes first',
  NEEDS_PROGRAMS,
  async () => {
    const ask = () => backUp('branch')
    const remove = () => t.admin.send('DELETE', '/admin/clients/branch')
    for (const [first, second] of [
      [ask, remove],
      [remove, ask],
    ] as const) {
      const registered = await t.admin.post('/admin/clients', { client_name: 'branch', url: shopUrl })
      assert.equal(registered.status, 201, registered.text)
      const answers: Promise<Answer>[] = []
      await atTheAuditTrail(
        1,
        () => void answers.push(first()),
        async () => {
          answers.push(second())
          await sleep(100)
        },
      )
      const [begun, next] = await Promise.all(answers)
      assert.ok(begun && next)
      if (first === remove) assert.deepEqual([next.status, next.body.code], [400, 'unknown_client'])
      else {
        assert.deepEqual([begun.status, next.status], [202, 200])
        await drain()
        const { status, error_message } = await find(begun.body.data.job_id)
        assert.deepEqual([status, error_message], ['cancelled', 'Its client was removed.'])
      }
      const waiting = await t.admin.get('/admin/backups/jobs?client_name=branch&status=pending')
      assert.equal(waiting.body.data.total, 0)
    }
  },
)

test(
  'a client that is removed while a request for a backup asks its database is unknown',
  NEEDS_PROGRAMS,
  async () => {
    const way = await startProxy(shopUrl)
    after(() => way.close())
    await t.admin.post('/admin/clients', { client_name: 'distant', url: way.url })
    const isAsked = async () => {
      const { runtime } = (await t.admin.get('/admin/clients')).body.data
      const { pool } = runtime.find(({ client_name }: { client_name: string }) => client_name === 'distant')
      return pool.total > pool.idle
    }
    way.freeze()
    const asked = backUp('distant')
    await eventually(isAsked)
    assert.equal((await t.admin.send('DELETE', '/admin/clients/distant')).status, 200)
    await way.mend()
    const { status, body } = await asked
    assert.deepEqual([status, body.code], [400, 'unknown_client'])
  },
)

test('of restores of two clients of one database at once, one begins', NEEDS_PROGRAMS, async () => {
  assert.equal((await t.admin.post('/admin/clients', { client_name: 'twin', url: shopUrl })).status, 201)
  const { id } = await done(await backUp())
  const ask = (client_name: string) => restore(id, { client_name, confirm: true })
  const [begun, refused] = (await Promise.all([ask('shop'), ask('twin')])).sort((a, b) => a.status - b.status)
  assert.ok(begun && refused)
  assert.deepEqual([begun.status, refused.status, refused.body.code], [202, 409, 'backup_job_active'])
  assert.match(refused.body.message, /^A restore of the client (shop|twin), which has the same database,/)
  assert.equal((await done(begun)).status, 'completed')
  assert.equal((await done(await ask('twin'))).status, 'completed')
})

test('of many downloads at once, eight begin', NEEDS_PROGRAMS, async () => {
  const { id } = await done(await backUp())
  const answers: Promise<Answer>[] = []
  let answered = 0
  const ask = () => {
    for (let count = 0; count < 12; count++) {
      const answer = t.admin.get(`/admin/backups/${id}/download`)
      answers.push(answer)
      void answer.then(() => answered++)
    }
  }
  await atTheAuditTrail(8, ask, () => eventually(() => answered === 4))
  const statuses = (await Promise.all(answers)).map(({ status }) => status).sort()
  assert.deepEqual(statuses, [...Array(8).fill(200), ...Array(4).fill(503)])
  assert.equal((await t.admin.get(`/admin/backups/${id}/download`)).status, 200)
})

test(
  'the deletion of a backup leaves the file that a later backup has written in its place',
  NEEDS_PROGRAMS,
  async () => {
    const [earlier, later] = [await done(await backUp()), await done(await backUp())]
    const { location } = later
    await rm(earlier.location)
    await t.service.kernel.db
      .updateTable('backupJob')
      .set({ location })
      .where('id', '=', earlier.id)
      .execute()
    const remove = ({ id }: { id: string }) => t.admin.send('DELETE', `/admin/backups/${id}`)
    assert.equal((await remove(earlier)).status, 200)
    assert.equal((await t.admin.get(`/admin/backups/${later.id}/download`)).status, 200)
    assert.equal((await remove(later)).status, 200)
    await assert.rejects(readFile(location), { code: 'ENOENT' })
  },
)
