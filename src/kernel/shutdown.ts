import type { Log } from './log.ts'
import { withTimeout } from './timeout.ts'

/** The time by which a process has to end, and the share of it that each part may use. */
export type Deadline = {
  /** Milliseconds left for that part; 0 when its time is over. */
  left(part?: keyof typeof SHARES): number
}

/** When each part ends, as a share of the whole time. The later parts may use what a part leaves over. */
const SHARES = {
  /** Requests on new connections are still accepted. */
  drain: 0.5,
  /** Running requests and jobs, concurrently; then they are cut off. */
  work: 0.7,
  /** Connections are closed in an orderly way. */
  connections: 0.8,
  /** Processes that share the port; then they are killed. */
  workers: 0.86,
  /** The embedded PostgreSQL; then it is killed. */
  database: 0.96,
  all: 1,
} as const

export function createDeadline(milliseconds: number): Deadline {
  const began = performance.now()
  return {
    left: (part = 'all') => Math.max(0, Math.round(began + milliseconds * SHARES[part] - performance.now())),
  }
}

/** Waits until a part has ended, at most that long. Logs a failure or a delay and returns: the next part follows in any case. */
export async function endWithin(
  what: string,
  milliseconds: number,
  log: Log,
  end: () => Promise<unknown>,
): Promise<void> {
  try {
    await withTimeout(end(), milliseconds, () =>
      log.warn({ event: 'stop_late', what }, `${what} did not end in time`),
    )
  } catch (error) {
    log.warn({ event: 'stop_failed', what, error }, `${what} did not end in order`)
  }
}
