import type pg from 'pg'
import { ClockError, DATABASE_TIME, type DatabaseClock, driftSentence, NOTED_DRIFT } from './clock.ts'
import type { Log } from './log.ts'

/**
 * Reads the database's time before this process writes anything. Throws a ClockError when the two clocks differ by more than `max`
 * milliseconds.
 */
export async function expectTime(
  pool: Pick<pg.ClientBase, 'query'>,
  clock: DatabaseClock,
  max = Number.POSITIVE_INFINITY,
): Promise<void> {
  // The first statement opens the connection, and its answer would be imprecise: so there are two.
  for (let round = 0; round < 2; round++) {
    const asked = performance.now()
    const { rows } = await pool.query<{ now: number }>(`select ${DATABASE_TIME} as now`)
    clock.learn(asked, rows[0]?.now ?? Number.NaN, performance.now())
  }
  const drift = clock.drift()
  if (Math.abs(drift) > max) throw new ClockError(`${driftSentence(drift)}. Nothing is served until then.`)
}

/** The clock's `learn`, which also logs once when the clocks drift apart, and once when they agree again. */
export function watchDrift(clock: DatabaseClock, log: Log): DatabaseClock['learn'] {
  let isApart = false
  return (...time) => {
    clock.learn(...time)
    const drift = clock.drift()
    if (Math.abs(drift) > NOTED_DRIFT === isApart) return
    isApart = !isApart
    const facts = { event: 'clock_drift', drift_ms: drift }
    if (isApart) log.warn(facts, driftSentence(drift))
    else log.info(facts, "this machine's clock agrees with that of the control database again")
  }
}
