import type pg from 'pg'
import type { IRateLimiterPostgresOptions } from 'rate-limiter-flexible'
import { type Clock, systemClock } from '../clock.ts'

/** Common options of every limiter in PostgreSQL. */
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

/** The parameters of the library's statements (11.4.0) that are times. */
const TIMES: Readonly<Record<string, readonly number[]>> = {
  'rate_limit:rlflx-upsert': [2, 3],
  'rate_limit:rlflx-upsert-force': [2, 3],
  'rate_limit:rlflx-get': [1],
  'rate_limit:rlflx-delete': [],
}

/**
 * The library uses this machine's clock. The rows are shared by all processes, so their times are shifted by the difference to the
 * database's clock: otherwise a process with a wrong clock would end the limits of all.
 */
function byDatabaseTime(pool: pg.Pool, now: Clock) {
  return {
    async query({ name, text, values }: Query) {
      const times = TIMES[name]
      if (times === undefined) throw new Error(`unknown statement of the rate limiter: ${name}`)
      const ahead = now().getTime() - systemClock().getTime()
      const shifted = values.map((value, index) => (times.includes(index) ? Number(value) + ahead : value))
      const result = await pool.query<{ expire?: string }>({ name, text, values: shifted })
      for (const row of result.rows)
        if (row.expire !== undefined) row.expire = String(Number(row.expire) - ahead)
      return result
    },
  }
}
