import type pg from 'pg'
import type { IRateLimiterPostgresOptions } from 'rate-limiter-flexible'
import { type Clock, systemClock } from '../clock.ts'

/** What every limiter in Postgres has in common. */
export type LimiterTable = Pick<
  IRateLimiterPostgresOptions,
  'storeClient' | 'storeType' | 'schemaName' | 'tableName' | 'tableCreated' | 'clearExpiredByTimeout'
>

/** The table of 0001_identity.sql. */
export const createLimiterTable = (pool: pg.Pool, now: Clock): LimiterTable => ({
  storeClient: byDatabaseTime(pool, now),
  storeType: 'pool',
  schemaName: 'service',
  tableName: 'rate_limit',
  tableCreated: true,
  clearExpiredByTimeout: false,
})

type Query = { readonly name: string; readonly text: string; readonly values: readonly unknown[] }

/** Which parameters of the library's statements (11.4.0) are times. */
const TIMES: Readonly<Record<string, readonly number[]>> = {
  'rate_limit:rlflx-upsert': [2, 3],
  'rate_limit:rlflx-upsert-force': [2, 3],
  'rate_limit:rlflx-get': [1],
  'rate_limit:rlflx-delete': [],
}

/**
 * The library counts by this machine's clock. Rows are for all processes, so the times that go in and out are shifted by what the two
 * clocks differ: a process with a wrong clock would end everybody's limits.
 */
function byDatabaseTime(pool: pg.Pool, now: Clock) {
  return {
    async query({ name, text, values }: Query) {
      const times = TIMES[name]
      if (times === undefined)
        throw new Error(`a statement of the limiter whose times are not known: ${name}`)
      const ahead = now().getTime() - systemClock().getTime()
      const shifted = values.map((value, index) => (times.includes(index) ? Number(value) + ahead : value))
      const result = await pool.query<{ expire?: string }>({ name, text, values: shifted })
      for (const row of result.rows)
        if (row.expire !== undefined) row.expire = String(Number(row.expire) - ahead)
      return result
    },
  }
}
