import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { eventually } from '#test/embedded.ts'

const { shopUrl, onShop, drain, queued, done, find, backUp, restore, cities, holding, isWaiting } =
  await backupService()

test(
  'a session of a caller that takes the name of the restore does not decide how it has ended',
  NEEDS_PROGRAMS,
  async () => {
    const job = await done(await backUp())
    await onShop('delete from city where id > 10')
    const before = await cities()
    const caller = new pg.Client({ connectionString: shopUrl })
    await caller.connect()
    await caller.query('begin; select txid_current()')
    const id = queued(await restore(job.id))
    let running: Promise<number> | undefined
    await holding('access share', async () => {
      running = drain()
      await eventually(isWaiting)
      await caller.query(`set application_name = 'gatehouse backup ${id}'`)
      // The longest pause between two looks for the transaction.
      await sleep(1_000)
      await caller.query(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and application_name like 'gatehouse backup 0%' and pid <> pg_backend_pid()`,
      )
      await caller.query('commit')
    })
    await running
    await caller.end()
    assert.equal((await find(id)).status, 'failed')
    assert.deepEqual(await cities(), before)
  },
)
