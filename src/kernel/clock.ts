/**
 * Where every part of the service reads the time: the control database's, so that all processes on it judge its rows by one clock.
 */
export type Clock = () => Date

/** This machine's, which may be wrong: for what never leaves this machine, and to compare. */
export const systemClock: Clock = () => new Date()

/** The control database's clock, as far as this process knows it. */
export type DatabaseClock = {
  readonly now: Clock
  /** Milliseconds by which it is ahead of this machine's. */
  drift(): number
  /** Learns what the database said it is (milliseconds since 1970) between two instants of performance.now(). */
  learn(asked: number, said: number, answered: number): void
}

/**
 * Runs on by the monotonic clock between two answers, so that a machine whose clock is set or wrong changes nothing. Each answer
 * bounds the difference of the two from both sides; an answer that contradicts the bounds begins new ones: the database's clock was set.
 */
export function createDatabaseClock(): DatabaseClock {
  let [least, most] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  const now = () => new Date(performance.now() + (least + most) / 2)
  return {
    now,
    drift: () => Math.round(now().getTime() - systemClock().getTime()),
    learn(asked, said, answered) {
      const [from, to] = [said - answered, said - asked]
      const isOther = from > most || to < least
      least = isOther ? from : Math.max(least, from)
      most = isOther ? to : Math.min(most, to)
    },
  }
}

/** As a column of a statement: what `learn` takes. */
export const DATABASE_TIME = 'extract(epoch from clock_timestamp())::float8 * 1000'

/** Milliseconds of drift beyond which it is said, and beyond which nothing is served: the machine's clock is not set at all. */
export const NOTED_DRIFT = 5_000
export const MOST_DRIFT = 60_000

/** A sentence for the operator. */
export const driftSentence = (drift: number): string =>
  `The clock of this machine is ${Math.abs(drift / 1_000).toFixed(1)} s ${drift > 0 ? 'behind' : 'ahead of'} that of the control database: ` +
  'synchronise both by NTP'

export class ClockError extends Error {}
