import type { Failure } from './errors.ts'

export type CircuitState = 'closed' | 'open' | 'half_open'

/**
 * Makes callers fail at once while a database or a provider is down. Closed → (a connection could not be made) → open, for 1 s doubling to 30 s →
 * half-open: one caller probes, the others still fail at once → closed, or open for longer.
 */
export type CircuitBreaker = {
  /** Whether a connection may be tried now. In the half-open state only one caller gets true: the probe. */
  allows(): boolean
  succeeded(): void
  failed(): void
  /** The attempt says nothing about the other side; after an undecided probe the next caller probes. */
  undecided(): void
  state(): CircuitState
  /** Milliseconds until the next probe. */
  wait(): number
  /** The failure of callers until then. */
  refusal(): Failure
}

const FIRST_WAIT = 1_000
const MAX_WAIT = 30_000

/** `refusal`: the failure of callers, with the milliseconds until the next probe. */
export function createCircuitBreaker(now: () => number, refusal: (wait: number) => Failure): CircuitBreaker {
  let failures = 0
  let until = 0
  let probing = false
  const state = (): CircuitState => {
    if (failures === 0) return 'closed'
    return probing || now() >= until ? 'half_open' : 'open'
  }
  const wait = () => Math.max(0, until - now())
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
      // Of attempts that began while it was closed, only the first failure counts.
      if (state() === 'open') return
      probing = false
      until = now() + Math.min(MAX_WAIT, FIRST_WAIT * 2 ** failures)
      failures++
    },
    undecided() {
      probing = false
    },
    wait,
    refusal: () => refusal(wait()),
  }
}
