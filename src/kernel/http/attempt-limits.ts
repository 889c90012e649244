import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import { tooMany } from './failures.ts'
import type { LimiterTableFor } from './limiter-table.ts'

/** Whether the attempt was right; undefined when it counts neither as wrong nor as right. */
export type Verdict = boolean | undefined

/** Runs the check of an attempt, or throws 429 when the next attempt has to wait. */
export type AttemptLimit = <V extends Verdict>(key: string, isRight: () => Promise<V>) => Promise<V>

/**
 * At most `requests` wrong attempts per key within the window. From half of them on, a wait follows each: one second,
 * two, four … A right attempt clears the key.
 *
 * An attempt is counted before it is checked, so that concurrent attempts, also in several processes, are limited like
 * consecutive ones. The wait is a row in PostgreSQL, so that only one attempt passes when it is over.
 */
export function createAttemptLimit(
  name: string,
  rule: { requests: number; window: number },
  tableFor: LimiterTableFor,
): AttemptLimit {
  const table = tableFor(rule.window)
  const tries = new RateLimiterPostgres({
    ...table,
    keyPrefix: name,
    points: rule.requests,
    duration: rule.window / 1_000,
  })
  const turns = new RateLimiterPostgres({ ...table, keyPrefix: `${name}_turn`, points: 1, duration: 1 })

  /** Lets one attempt through, or throws 429. Call `clear` when it was right, and `takeBack` when it could not be checked. */
  const admit = async (key: string): Promise<{ clear(): Promise<unknown>; takeBack(): Promise<unknown> }> => {
    const waiting = await turns.get(key)
    if (waiting !== null) throw tooMany(waiting.msBeforeNext)
    const { consumedPoints: count, msBeforeNext: left } = await tries.penalty(key)
    if (count > rule.requests) throw tooMany(left)
    const wait = waitAfter(count, rule.requests, left)
    if (wait > 0) await takeTurn(turns, key, wait)
    const endTurn = async () => wait > 0 && turns.delete(key)
    return {
      clear: () => Promise.all([tries.delete(key), endTurn()]),
      takeBack: () => Promise.all([takeBack(tries, key), endTurn()]),
    }
  }

  return async (key, isRight) => {
    const { clear, takeBack } = await admit(key)
    const verdict = await isRight().catch(async (error: unknown) => {
      await takeBack()
      throw error
    })
    if (verdict === undefined) await takeBack()
    else if (verdict) await clear()
    return verdict
  }
}

/** Not in a window that began after the attempt, which has not counted it. */
async function takeBack(tries: RateLimiterPostgres, key: string): Promise<void> {
  const { consumedPoints } = await tries.reward(key)
  if (consumedPoints < 0) await tries.penalty(key)
}

/** Milliseconds until the next attempt after the `count`th wrong one; after the last one, the rest of the window. */
function waitAfter(count: number, max: number, left: number): number {
  const free = Math.floor(max / 2)
  if (count >= max) return left
  return count < free ? 0 : Math.min(left, 1_000 * 2 ** (count - free))
}

async function takeTurn(turns: RateLimiterPostgres, key: string, wait: number): Promise<void> {
  try {
    await turns.consume(key, 1, { customDuration: Math.ceil(wait / 1_000) })
  } catch (refused) {
    // A concurrent attempt has taken the turn.
    if (refused instanceof RateLimiterRes) throw tooMany(refused.msBeforeNext)
    throw refused
  }
}
