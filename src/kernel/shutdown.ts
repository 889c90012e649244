import type { Log } from './log.ts'

/** The one moment by which a process has ended, and the share of the time that each of its parts may use of it. */
export type Deadline = {
  /** Milliseconds until that part has to be over; 0 when it has to be over by now. */
  left(part?: keyof typeof SHARES): number
}

/** By when, as shares of the whole: what a part does not use is there for the ones after it. */
const SHARES = {
  /** Running requests and jobs, side by side; after that they are cut off. */
  work: 0.7,
  /** Connections are closed in good order. */
  connections: 0.8,
  /** Processes that share the port; after that they are killed. */
  workers: 0.86,
  /** The embedded PostgreSQL; after that it is killed. */
  database: 0.96,
  all: 1,
} as const

export function createDeadline(milliseconds: number): Deadline {
  const began = performance.now()
  return {
    left: (part = 'all') => Math.max(0, Math.round(began + milliseconds * SHARES[part] - performance.now())),
  }
}

/** Waits for something to end, for so long. What fails or is late is logged and left: the next part has its turn either way. */
export async function endWithin(
  what: string,
  milliseconds: number,
  log: Log,
  end: () => Promise<unknown>,
): Promise<void> {
  const late = Promise.withResolvers<'late'>()
  const timer = setTimeout(late.resolve, milliseconds, 'late')
  try {
    const outcome = await Promise.race([end(), late.promise])
    if (outcome === 'late') log.warn({ event: 'stop_late', what }, `${what} did not end in time`)
  } catch (error) {
    log.warn({ event: 'stop_failed', what, error }, `${what} did not end in order`)
  } finally {
    clearTimeout(timer)
  }
}
