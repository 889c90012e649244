import type pg from 'pg'
import type { IRateLimiterPostgresOptions } from 'rate-limiter-flexible'
import { CLOCK_TOLERANCE, type Clock, systemClock } from '../../clock.ts'

/** Common options of every limiter in PostgreSQL. */
type LimiterTable = Pick<
  IRateLimiterPostgresOptions,
  'storeClient' | 'storeType' | 'schemaName' | 'tableName' | 'tableCreated' | 'clearExpiredByTimeout'
>

/** The table of 0001_identity.sql, for limits of which no wait is longer than `longest` milliseconds. */
export type LimiterTableFor = (longest: number) => LimiterTable

export const createLimiterTable =
  (pool: pg.Pool, now: Clock): LimiterTableFor =>
  (longest) => ({
    storeClient: byDatabaseTime(pool, now, longest),
    storeType: 'pool',
    schemaName: 'service',
    tableName: 'rate_limit',
    tableCreated: true,
    clearExpiredByTimeout: false,
  })

/**
 * Part of a statement that counts, whose commit need not wait for the disk: a crash of the database server takes back the counts of its last
 * half second. The setting ends with the statement.
 */
export const ASYNCHRONOUSLY = `async as (select set_config('synchronous_commit', 'off', true))`

/** An end that is further away was written before the database's clock was set back, so it counts as over. */
const UPSERT = `
  with ${ASYNCHRONOUSLY}
  insert into service.rate_limit as known (key, points, expire) select $1, $2, $3 from async
  on conflict (key) do update set
    points = case when known.expire > $4 and known.expire <= $5 then known.points else 0 end + excluded.points,
    expire = case when known.expire > $4 and known.expire <= $5 then known.expire else excluded.expire end
  returning points, expire`

/**
 * The library's statements (11.4.0) by name, as they are sent: the same parameters, of which some are times, and then the latest end that a
 * window can have.
 */
const STATEMENTS: Readonly<Record<string, { readonly text: string; readonly times: readonly number[] }>> = {
  'rate_limit:rlflx-upsert': { text: UPSERT, times: [2, 3] },
}

type Query = { readonly name: string; readonly text: string; readonly values: readonly unknown[] }

/**
 * The library uses this machine's clock. The rows are shared by all processes, so their times are shifted by the difference to the
 * database's clock: otherwise a process with a wrong clock would end the limits of all.
 */
function byDatabaseTime(pool: pg.Pool, now: Clock, longest: number) {
  return {
    async query(asked: Query) {
      const { text, times } = STATEMENTS[asked.name] ?? unknown(asked.name)
      const present = now().getTime()
      const ahead = present - systemClock().getTime()
      const values = asked.values.map((value, index) =>
        times.includes(index) ? Number(value) + ahead : value,
      )
      values.push(present + longest + CLOCK_TOLERANCE)
      const result = await pool.query<{ expire?: string }>({ name: asked.name, text, values })
      for (const row of result.rows)
        if (row.expire !== undefined) row.expire = String(Number(row.expire) - ahead)
      return result
    },
  }
}

function unknown(name: string): never {
  throw new Error(`unknown statement of the rate limiter: ${name}`)
}
