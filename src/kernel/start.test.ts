import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { controlDatabase, testKernel } from '#test/harness.ts'

test('a start that fails half-way leaves no connection open', async () => {
  for (const [statement, reason] of [
    ['alter table service.migration rename to renamed', /lacks 0001/],
    ['alter table service.process_lease rename to renamed', /process_lease/],
    ['drop schema service_jobs cascade', /service_jobs|pg-boss/],
  ] as const) {
    const controlUrl = await controlDatabase()
    await withClient(controlUrl, (client) => client.query(statement))
    await assert.rejects(testKernel({ controlUrl, config: { database: { migrate: false } } }), reason)
    const others =
      'select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
    await withClient(controlUrl, (client) =>
      eventually(async () => (await client.query(others)).rowCount === 0),
    )
  }
})
