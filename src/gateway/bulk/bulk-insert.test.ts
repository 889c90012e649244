import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Row } from '#databases/request/request.ts'
import { fail } from '#gateway/errors.ts'
import { createBulkInsert } from './bulk-insert.ts'

/** Inserts rows 0 to n - 1 into a sink that refuses those for which `isBad` holds, as a statement of a database does: all or none. */
async function insertInto(isBad: (id: number) => boolean, n: number, batch: number, maxErrors = n + 1) {
  const stored: number[] = []
  let statements = 0
  const bulk = createBulkInsert({
    maxRows: 100_000,
    maxErrors,
    check: () => {},
    write: async (rows) => {
      statements++
      const ids = rows.map(({ id }) => Number(id))
      if (ids.some(isBad)) throw fail('invalid_value')
      stored.push(...ids)
      return ids.length
    },
  })
  const rows: Row[] = Array.from({ length: n }, (_, id) => ({ id }))
  for (let at = 0; at < n; at += batch) if (!(await bulk.insert(rows.slice(at, at + batch)))) break
  return { stored, statements, refused: bulk.refused(), inserted: bulk.inserted() }
}

test('every good row is stored exactly once and every bad row is reported, wherever they are', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 400 }),
      fc.integer({ min: 1, max: 400 }),
      fc.func(fc.boolean()),
      fc.constantFrom(1, 2, 10, 100),
      async (n, batch, coin, period) => {
        const isBad = (id: number) => (period === 1 ? coin(id) : id % period === 0)
        const { stored, refused, inserted } = await insertInto(isBad, n, batch)
        const ids = Array.from({ length: n }, (_, id) => id)
        assert.deepEqual(
          stored,
          ids.filter((id) => !isBad(id)),
        )
        assert.equal(inserted, stored.length)
        assert.deepEqual(
          refused.errors.map(({ index }) => index),
          ids.filter(isBad),
        )
      },
    ),
    { numRuns: 200 },
  )
})

test('the number of statements stays near the number of rows when all are bad, and far below it when few are', async () => {
  const all = await insertInto(() => true, 10_000, 5_000)
  assert.ok(all.statements < 10_500, `${all.statements} for only bad rows`)
  const none = await insertInto(() => false, 10_000, 5_000)
  assert.ok(none.statements < 10, `${none.statements} for none`)
  const one = await insertInto((id) => id === 7_777, 10_000, 5_000)
  assert.ok(one.statements < 40, `${one.statements} for one bad row`)
  const percent = await insertInto((id) => id % 100 === 50, 10_000, 5_000)
  assert.ok(percent.statements < 1_300, `${percent.statements} for 100 bad rows`)
  const block = await insertInto((id) => id >= 5_000 && id < 5_500, 20_000, 5_000)
  assert.ok(block.statements < 700, `${block.statements} for 500 bad rows in one place`)
})

test('it stops at the largest number of refused rows', async () => {
  const { refused, statements } = await insertInto(() => true, 10_000, 5_000, 100)
  assert.equal(refused.count, 100)
  assert.ok(statements < 300)
})

test('a failure that is not about a row ends the run at once', async () => {
  let statements = 0
  const bulk = createBulkInsert({
    ...{ maxRows: 100, maxErrors: 100, check: () => {} },
    write: async () => {
      statements++
      throw fail('connection_lost')
    },
  })
  await assert.rejects(bulk.insert([{ id: 1 }, { id: 2 }]), { code: 'connection_lost' })
  assert.deepEqual([statements, bulk.inserted(), bulk.refused().count], [1, 0, 0])
})

test('a backend that cannot write rows together gets them one at a time', async () => {
  const stored: unknown[] = []
  const bulk = createBulkInsert({
    ...{ maxRows: 100, maxErrors: 100, check: () => {} },
    write: async (rows) => {
      if (rows.length > 1) throw fail('unsupported_by_driver')
      stored.push(rows[0]?.id)
      return 1
    },
  })
  await bulk.insert(Array.from({ length: 50 }, (_, id) => ({ id })))
  assert.deepEqual(
    stored,
    Array.from({ length: 50 }, (_, id) => id),
  )
})
