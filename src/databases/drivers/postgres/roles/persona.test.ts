import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { createReadAheadBudgets } from '#databases/drivers/memory-budget.ts'
import { createPool } from '#databases/drivers/postgres/pool/pool.ts'
import { connect } from '#databases/drivers/postgres/protocol/connect.ts'
import { createRunner } from '#databases/drivers/postgres/runner.ts'
import { createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { inTransaction } from '#databases/drivers/postgres/transaction.ts'
import { Failure } from '#kernel/errors.ts'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'

const role = `caller_${randomBytes(4).toString('hex')}`
const claims = '{"user_id":"ada"}'
const database = await testDatabase()
const limits = {
  connectTimeout: 3_000,
  statementTimeout: 5_000,
  terminate: () => {},
  answerBytes: 33_554_432,
  readAhead: createReadAheadBudgets(33_554_432),
  idleTimeout: 10_000,
  maxConnections: 1,
  maxWaiting: 10,
}
const pool = createPool({
  ...limits,
  connect: () => connect({ ...limits, url: database.url, applicationName: 'persona' }),
})
const own = createRunner(pool)
const caller = own.as({ role, claims })

before(() =>
  withClient(testServerUrl(), (client) =>
    client.query(`create role ${role} nologin; grant ${role} to "${new URL(database.url).username}"`),
  ),
)
after(async () => {
  await pool.close()
  await database.drop()
  await withClient(testServerUrl(), (client) => client.query(`drop role ${role}`))
})

const WHO = createSql(`select json_build_array(current_user, current_setting('request.claims', true)) as who`)
const FAILS = createSql('select 1 / (select 0) as fails')
const fails = (work: Promise<unknown>) => assert.rejects(work, Failure)
const held = (work: () => Promise<unknown>) => async () =>
  inTransaction(pool, async (on) => [await caller.value(WHO, undefined, on), await work()], {
    timeout: 5_000,
    persona: { role, claims },
  })

test('role and claims end with the statement or the transaction, also after a failure, since connections are shared', async () => {
  const ways: readonly (() => Promise<unknown>)[] = [
    () => caller.value(WHO),
    () => fails(caller.value(FAILS)),
    // The role does not exist: nothing of the statement is done.
    () => fails(own.as({ role: 'nobody', claims }).value(WHO)),
    held(async () => {}),
    () => fails(held(() => Promise.reject(new Failure('late', 400, 'late')))()),
  ]
  for (const way of ways) {
    // From the second time on it is prepared.
    for (let round = 0; round < 3; round++) {
      assert.deepEqual(await caller.value(WHO), [role, claims])
      await way()
      const client = await pool.acquire()
      const { rows } = await client.query(
        `select current_setting('role') as role, current_setting('request.claims', true) as claims`,
      )
      pool.release(client)
      assert.deepEqual(rows, [{ role: 'none', claims: '' }])
    }
  }
  assert.equal(pool.stats().total, 1)
})
