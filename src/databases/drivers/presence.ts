import type { Presence } from '#databases/drivers/driver.ts'
import { fail } from '#databases/failures.ts'

/** Told to no one: nothing more is done for them. */
export const callerLeft = () =>
  fail('statement_timeout', {
    hint: 'The caller has left. The statement was cancelled and what it did is undone.',
  })

/** In front of each step of what takes several. */
export function requirePresence(presence: Presence | undefined): void {
  if (presence?.hasLeft()) throw callerLeft()
}

/** For work that nobody leaves: tests, and the service's own. */
export const ALWAYS_PRESENT: Presence = {
  hasLeft: () => false,
  signal: () => new AbortController().signal,
}
