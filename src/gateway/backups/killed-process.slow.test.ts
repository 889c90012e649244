import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { ADMIN_KEY, actor, controlDatabase, TEST_SECRET } from '#test/harness.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'

test('pg_restore ends with a service that is killed, and changes nothing', NEEDS_PROGRAMS, async (t) => {
  const { shopUrl, onShop, holding, isWaiting, cities } = await backupService()
  const home = await createTemporaryHome()
  t.after(() => home.remove())
  const before = await cities()
  const controlUrl = await controlDatabase()
  const env = {
    DATABASE_URL: controlUrl,
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_KEY_12: ADMIN_KEY,
    SERVICE_CLIENTS__SHOP__URL: shopUrl,
  }
  const begin = async () => {
    const program = await startProgram(home.folder, env)
    t.after(() => program.end('SIGKILL'))
    return { program, admin: actor(program.url, { apikey: ADMIN_KEY }) }
  }
  const programs = async () =>
    (
      await onShop(
        `select from pg_stat_activity where datname = current_database() and application_name like 'gatehouse backup%'`,
      )
    ).rowCount ?? 0
  const first = await begin()
  const made = await first.admin.post('/admin/backups', { client_name: 'shop' })
  const id = made.body.data.job_id
  await eventually(
    async () => (await first.admin.get(`/admin/backups/jobs/${id}`)).body.data.status === 'completed',
  )
  await holding('access share', async () => {
    const body = { client_name: 'shop', confirm: 'shop' }
    assert.equal((await first.admin.post(`/admin/backups/${id}/restore`, body)).status, 202)
    await eventually(isWaiting)
    await first.program.end('SIGKILL')
    await eventually(async () => (await programs()) === 0)
  })
  assert.deepEqual(await cities(), before)

  // A busy machine may need longer for the start than the lease has left.
  const { rowCount } = await withClient(controlUrl, (client) =>
    client.query(
      `update service.backup_job set lease_until = now() + interval '50 seconds' where lease_until > now()`,
    ),
  )
  assert.equal(rowCount, 1, 'the lease of the killed restore')
  const second = await begin()
  await holding('access exclusive', async () => {
    // The lease of the killed restore still runs, so the client is taken.
    assert.equal((await second.admin.post('/admin/backups', { client_name: 'shop' })).status, 409)
  })
  await second.program.end('SIGTERM')
  assert.deepEqual(await cities(), before)
})
