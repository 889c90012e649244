export type CircuitState = 'closed' | 'open' | 'half_open'

/**
 * Lets callers fail at once while a database is down. Closed → (a connection could not be made) → open, for 1 s doubling to 30 s →
 * half-open: one caller may try, the others still fail at once → closed, or open for longer.
 */
export type CircuitBreaker = {
  /** Whether a connection may be tried now; a true answer in the half-open state is the one probe. */
  allows(): boolean
  succeeded(): void
  failed(): void
  /** The attempt says nothing about the database; if it was the probe, the next one is. */
  undecided(): void
  state(): CircuitState
  /** How long until the next probe, in milliseconds. */
  wait(): number
}

const FIRST_WAIT = 1_000
const LONGEST_WAIT = 30_000

export function createCircuitBreaker(now: () => number): CircuitBreaker {
  let failures = 0
  let until = 0
  let probing = false
  const state = (): CircuitState => {
    if (failures === 0) return 'closed'
    return probing || now() >= until ? 'half_open' : 'open'
  }
  return {
    state,
    allows() {
      const current = state()
      if (current !== 'half_open') return current === 'closed'
      if (probing) return false
      probing = true
      return true
    },
    succeeded() {
      failures = 0
      probing = false
    },
    failed() {
      // Of attempts that began together, while it was closed, the first has opened it.
      if (state() === 'open') return
      probing = false
      until = now() + Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** failures)
      failures++
    },
    undecided() {
      probing = false
    },
    wait: () => Math.max(0, until - now()),
  }
}
