import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { eventually } from '#test/embedded.ts'
import { actor } from '#test/harness.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'

test('pg_restore ends with a service that is killed, and changes nothing', NEEDS_PROGRAMS, async (t) => {
  const { shopUrl, onShop, holding, isWaiting, cities } = await backupService()
  const home = await createTemporaryHome()
  t.after(() => home.remove())
  const before = await cities()
  const begin = async () => {
    const program = await startProgram(home.folder, { SERVICE_CLIENTS__SHOP__URL: shopUrl })
    t.after(() => program.end('SIGKILL'))
    const key = (await readFile(path.join(home.folder, 'data/admin-key'), 'utf8')).trim()
    return { program, admin: actor(program.url, { apikey: key }) }
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

  const second = await begin()
  await holding('access exclusive', async () => {
    // The lease of the killed restore still runs, so the client is taken.
    assert.equal((await second.admin.post('/admin/backups', { client_name: 'shop' })).status, 409)
  })
  await second.program.end('SIGTERM')
  assert.deepEqual(await cities(), before)
})
