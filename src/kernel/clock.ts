/**
 * The time for every part of the service: the control database's, so that all processes compare its rows with the same clock.
 */
export type Clock = () => Date

/** This machine's clock, which may be wrong: for times that stay on this machine, and for comparison. */
export const systemClock: Clock = () => new Date()

/** This process's estimate of the control database's clock. */
export type DatabaseClock = {
  readonly now: Clock
  /** Milliseconds by which it is ahead of this machine's. */
  drift(): number
  /** Learns that the database's time was `said` (milliseconds since 1970) between two instants of performance.now(). */
  learn(asked: number, said: number, answered: number): void
}

/**
 * Uses the monotonic clock between two answers, so that changes of the machine's clock have no effect. Each answer
 * bounds the difference of the two clocks from both sides. An answer outside the bounds starts new ones: the database's clock was set.
 */
export function createDatabaseClock(): DatabaseClock {
  let [min, max] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  const now = () => new Date(performance.now() + (min + max) / 2)
  return {
    now,
    drift: () => Math.round(now().getTime() - systemClock().getTime()),
    learn(asked, said, answered) {
      const [from, to] = [said - answered, said - asked]
      const isOther = from > max || to < min
      min = isOther ? from : Math.max(min, from)
      max = isOther ? to : Math.min(max, to)
    },
  }
}

/** How far the estimates of the database's time may be apart, in two processes or before a lock and after it, milliseconds. */
export const CLOCK_TOLERANCE = 5_000

/** A time that is further ahead than anything is written: from before the database's clock was set back. What it bounds is over. */
export const tooFarAhead = (now: Clock, longest = 0): Date =>
  new Date(now().getTime() + longest + CLOCK_TOLERANCE)

/** SQL for the time that `learn` takes. */
export const DATABASE_TIME = 'extract(epoch from clock_timestamp())::float8 * 1000'

/** Milliseconds of drift from which on it is logged, and from which on the service does not start: then the clock is not synchronised at all. */
export const NOTED_DRIFT = 5_000
export const MAX_DRIFT = 60_000

/** The operator's message. */
export const driftSentence = (drift: number): string =>
  `The clock of this machine is ${Math.abs(drift / 1_000).toFixed(1)} s ${drift > 0 ? 'behind' : 'ahead of'} that of the control database: ` +
  'synchronise both by NTP'

export class ClockError extends Error {}
