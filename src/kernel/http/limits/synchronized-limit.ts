import type pg from 'pg'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { CLOCK_TOLERANCE } from '../../clock.ts'

/** Interval at which processes exchange their counts, milliseconds. */
const EXCHANGE = 1_000

/**
 * A limit for requests that are too many and too cheap for a query each: counted in this process, and
 * synchronized with the other processes once a second. Each process can exceed it by the requests of one second.
 */
export function createSynchronizedLimit(
  name: string,
  rule: { requests: number; window: number },
  pool: pg.Pool,
) {
  const { requests, window } = rule
  const memory = new RateLimiterMemory({ keyPrefix: name, points: requests, duration: window / 1_000 })
  const unsent = new Map<string, number>()

  const exchange = async (): Promise<void> => {
    if (unsent.size === 0) return
    const sent = [...unsent]
    unsent.clear()
    const { rows } = await pool.query<{ key: string; left: number }>(COUNT, [
      sent.map(([key]) => `${name}:${key}`),
      sent.map(([, count]) => count),
      window,
      requests,
    ])
    for (const { key, left } of rows) await memory.block(key.slice(name.length + 1), Math.ceil(left / 1_000))
  }
  // While the database does not answer, each process counts for itself.
  const timer = setInterval(() => exchange().catch(() => {}), EXCHANGE).unref()

  return {
    consume(key: string) {
      unsent.set(key, (unsent.get(key) ?? 0) + 1)
      return memory.consume(key)
    },
    async emptyFor(key: string) {
      const counted = await memory.get(key)
      return counted !== null && counted.remainingPoints <= 0 ? counted.msBeforeNext : 0
    },
    close: () => clearInterval(timer),
  }
}

const IS_OPEN = `known.expire > excluded.expire - $3::bigint and known.expire <= excluded.expire + ${CLOCK_TOLERANCE}`

/**
 * Adds the counts of this process, and returns the keys that all processes together have counted beyond the limit. A window that ends later
 * than a new one was written before the database's clock was set back, so it counts as over. In one order, so that two processes do not wait for each
 * other: one of them would lose its counts.
 */
const COUNT = `
  with counted as (
    insert into service.rate_limit as known (key, points, expire)
    select key, points, (extract(epoch from clock_timestamp()) * 1000)::bigint + $3::bigint
      from unnest($1::text[], $2::int[]) as sent (key, points) order by key
    on conflict (key) do update set
      points = excluded.points + case when ${IS_OPEN} then known.points else 0 end,
      expire = case when ${IS_OPEN} then known.expire else excluded.expire end
    returning key, points, expire
  )
  select key, (expire - extract(epoch from clock_timestamp()) * 1000)::float8 as left from counted where points >= $4`
