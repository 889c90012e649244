import type { Driver, RowsResult } from '#databases/drivers/driver.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import type { Body } from '#databases/request/fields.ts'
import { readCount, readDelete, readFetch, readInsert, readUpdate } from '#databases/request/read-request.ts'

/** The default limits for bodies, for tests and benchmarks. */
export const ORDINARY_LIMITS = {
  columns: 256,
  conditions: 100,
  nesting: 10,
  relations: 10,
  insertRows: 100_000,
  rows: 1_000,
  maxRows: 10_000,
}

/** Limits so low that the rows of a test exceed them. */
export const limits = { ...ORDINARY_LIMITS, rows: 5, maxRows: 50 }

export async function textOf(answer: RowsResult): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of answer.json) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

export type Calls = ReturnType<typeof createCalls>

/** Calls a driver like the gateway does: read the body, plan, run. Returns parsed rows. */
export function createCalls(driver: () => Driver) {
  const options = { limits }
  const rows = (json: readonly Buffer[]) => JSON.parse(Buffer.concat(json).toString())
  return {
    async fetch(body: Body) {
      const answer = await driver().select(await driver().plan(readFetch(body, options), EVERY_RIGHT))
      const text = await textOf(answer)
      const { hasMore, total } = answer.facts()
      return { rows: JSON.parse(text), text, hasMore, count: total }
    },
    async insert(table: string, insert_body: unknown, more: Body = {}) {
      const answer = await driver().insert(
        await driver().plan(readInsert({ table, insert_body, ...more }, options), EVERY_RIGHT),
      )
      return { ...answer, rows: rows(answer.json) }
    },
    async update(body: Body) {
      const answer = await driver().update(await driver().plan(readUpdate(body, options), EVERY_RIGHT))
      return { ...answer, rows: rows(answer.json) }
    },
    async remove(body: Body) {
      const answer = await driver().delete(await driver().plan(readDelete(body, options), EVERY_RIGHT))
      return { ...answer, rows: rows(answer.json) }
    },
    count: async (body: Body) => driver().count(await driver().plan(readCount(body, options), EVERY_RIGHT)),
  }
}
