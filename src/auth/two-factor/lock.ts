import { ownBucket, type Source } from '#identity/known-devices.ts'
import { tooFarAhead } from '#kernel/clock.ts'
import { retryAfter } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { countFailure, deleteFailures, type Factor, findLockEnd } from './store.ts'

/** Wrong codes in a row, in any number of sign-ins, and the time for which they lock the factor; milliseconds. */
const MAX_FAILURES = 10
const LOCK = 900_000
/** Of all known devices and sessions together within that time, so that more of them are not any number of tries. */
const MAX_TOTAL = 50

/** The counters of wrong codes that an attempt belongs to, by their names in the table. */
export type Counters = readonly string[]

/**
 * Strangers count together: who holds the password must not lock out the owner. A known device and a session count by themselves; they
 * exist after a complete sign-in only.
 */
export async function countersOf(kernel: Kernel, userId: string, source: Source): Promise<Counters> {
  const bucket = await ownBucket(kernel, userId, source)
  return bucket === undefined ? [STRANGERS] : [bucket, TOTAL]
}

export const STRANGERS = 'strangers'
const TOTAL = 'known'

/** With the user's row locked, as the others here, so that attempts at once count like those one after the other. */
export async function expectUnlocked(
  { db, now }: Kernel,
  { id }: Pick<Factor, 'id'>,
  counters: Counters,
): Promise<void> {
  const end = await findLockEnd(db, id, { counters, latest: tooFarAhead(now, LOCK) })
  const left = (end?.getTime() ?? 0) - now().getTime()
  if (left > 0) throw fail('ACCOUNT_TEMPORARILY_LOCKED', { headers: retryAfter(Math.ceil(left / 1_000)) })
}

export async function countWrongCode(
  kernel: Kernel,
  { id }: Pick<Factor, 'id'>,
  counters: Counters,
): Promise<void> {
  const now = kernel.now()
  const lockedUntil = new Date(now.getTime() + LOCK)
  const window = { since: new Date(now.getTime() - LOCK), until: tooFarAhead(kernel.now) }
  for (const counter of counters)
    await countFailure(kernel.db, id, {
      counter,
      now,
      lockedUntil,
      ...(counter === TOTAL ? { max: MAX_TOTAL, window } : { max: MAX_FAILURES }),
    })
}

/** A right code begins the counts anew to which a wrong one would have added. */
export const clearWrongCodes = (
  { db }: Kernel,
  { id }: Pick<Factor, 'id'>,
  counters: Counters,
): Promise<void> => deleteFailures(db, id, counters)
