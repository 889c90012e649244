import type { Presence } from '#databases/drivers/driver.ts'
import { fail } from '#databases/failures.ts'

/** The failure of work whose caller has left. It is never sent. */
export const callerLeft = () =>
  fail('statement_timeout', {
    hint: 'The caller has left. The statement was cancelled and what it did is undone.',
  })

/** To be called before each step of an operation with several steps. */
export function requirePresence(presence: Presence | undefined): void {
  if (presence?.hasLeft()) throw callerLeft()
}

/** For work without a caller who could leave: tests, and the service's own work. */
export const ALWAYS_PRESENT: Presence = {
  hasLeft: () => false,
  signal: () => new AbortController().signal,
}
