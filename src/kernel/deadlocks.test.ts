import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { testKernel } from '#test/harness.ts'
import { atomically, type Kernel } from './kernel.ts'

const kernel = await testKernel()
await sql`create table service.places (id int primary key, visits int not null)`.execute(kernel.db)
await sql`insert into service.places values (1, 0), (2, 0)`.execute(kernel.db)

const visit = (kernel: Kernel, id: number) =>
  sql`update service.places set visits = visits + 1 where id = ${id}`.execute(kernel.db)

test('of two transactions that wait for each other both succeed, and each is done once', async () => {
  let arrived = 0
  const { promise: bothHold, resolve } = Promise.withResolvers<void>()
  let runs = 0
  const inOrder = (first: number, second: number) =>
    atomically(kernel, async (kernel) => {
      runs++
      await visit(kernel, first)
      if (++arrived === 2) resolve()
      await bothHold
      await visit(kernel, second)
    })
  await Promise.all([inOrder(1, 2), inOrder(2, 1)])
  const { rows } = await sql<{ visits: number }>`select visits from service.places`.execute(kernel.db)
  assert.deepEqual(
    rows.map(({ visits }) => visits),
    [2, 2],
  )
  // More often when the first one has its row again before the other one wakes.
  assert.ok(runs >= 3, `${runs} runs`)
})

test('another failure is not repeated', async () => {
  let runs = 0
  const failing = atomically(kernel, async (kernel) => {
    runs++
    await sql`select 1 / 0`.execute(kernel.db)
  })
  await assert.rejects(failing, { code: '22012' })
  assert.equal(runs, 1)
})
