import type pg from 'pg'
import { ClockError, DATABASE_TIME, type DatabaseClock, driftSentence, NOTED_DRIFT } from './clock.ts'
import type { Log } from './log.ts'

/** The first question of a process: what time is it? Asked before anything is written. `most` in milliseconds. */
export async function expectTime(
  pool: pg.Pool,
  clock: DatabaseClock,
  most = Number.POSITIVE_INFINITY,
): Promise<void> {
  // The connection is made by the first of two, which would blur the answer.
  for (let round = 0; round < 2; round++) {
    const asked = performance.now()
    const { rows } = await pool.query<{ now: number }>(`select ${DATABASE_TIME} as now`)
    clock.learn(asked, rows[0]?.now ?? Number.NaN, performance.now())
  }
  const drift = clock.drift()
  if (Math.abs(drift) > most) throw new ClockError(`${driftSentence(drift)}. Nothing is served until then.`)
}

/** Hears the database's time again and again (`learn`), and says once when the clocks drift apart, and when they agree again. */
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
