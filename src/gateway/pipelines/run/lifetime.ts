import type { Presence } from '#databases/drivers/driver.ts'
import { fail } from '#gateway/errors.ts'
import type { Config } from '#kernel/config/config.ts'
import { Failure } from '#kernel/errors.ts'
import type { RunRequest } from './run-request.ts'

/** How long a run may go on, and how its steps have spent that time. */
export type Lifetime = {
  /** The caller's; it also ends when the run may not go on. */
  readonly presence: Presence
  /** Ends the run for this reason. */
  stop(reason: Error): void
  /** Why the service ends the run, if so. */
  stopReason(cause?: Failure): Failure | undefined
  /** Throws when the run may not go on, or its caller has left. */
  check(): void
  measure<T>(step: 'source' | 'sink', work: () => Promise<T>): Promise<T>
  /** Milliseconds. The transform has the time of neither end; 0 when they have overlapped. */
  durations(): Readonly<Record<'source' | 'transform' | 'sink', number>>
}

/** It begins at once. */
export function createLifetime({ gateway }: Config, { presence, stopping }: RunRequest): Lifetime {
  const { timeout } = gateway.pipelines
  const began = performance.now()
  const spent = { source: 0, sink: 0 }
  const ending = new AbortController()
  const signal = AbortSignal.any([ending.signal, ...(stopping === undefined ? [] : [stopping])])
  const isLate = () => performance.now() > began + timeout

  function stopReason(cause?: Failure): Failure | undefined {
    if (signal.reason instanceof Failure) return signal.reason
    if (signal.aborted)
      return fail('pipeline_stopped', { hint: 'Run it again when the service runs.', cause })
    if (!isLate()) return undefined
    const hint = `A run takes at most ${timeout / 1_000} seconds (gateway.pipelines.timeout).`
    return fail('pipeline_timeout', { hint, cause })
  }

  return {
    presence: { ...presence, hasLeft: () => presence.hasLeft() || isLate() || signal.aborted },
    stop: (reason) => ending.abort(reason),
    stopReason,
    check() {
      const reason = stopReason()
      if (reason !== undefined) throw reason
      if (presence.hasLeft()) throw fail('statement_timeout', { hint: 'The caller has left.' })
    },
    async measure(step, work) {
      const start = performance.now()
      try {
        return await work()
      } finally {
        spent[step] += performance.now() - start
      }
    },
    durations() {
      const rest = performance.now() - began - spent.source - spent.sink
      return {
        source: Math.round(spent.source),
        transform: Math.round(Math.max(0, rest)),
        sink: Math.round(spent.sink),
      }
    },
  }
}
