import type { Log } from '#kernel/log.ts'

/** Work that no caller awaits. */
export type Background = {
  /** Runs it. A failure is logged. */
  run(work: () => Promise<void>): void
  /** Makes a function that runs the work, and once more when it is called while the work runs. */
  coalesced(work: () => Promise<void>): () => void
  /** Resolves when nothing runs. */
  settle(): Promise<void>
}

/** All work that fails with the database shares one line of the log in this time, milliseconds. */
const QUIET = 5_000

/** Failures after the signal are not logged: the process stops. */
export function createBackground(log: Log, signal: AbortSignal): Background {
  const running = new Set<Promise<void>>()
  let quietUntil = 0

  /** The leases end by themselves, and the deliveries are due again. */
  function complain(error: unknown): void {
    if (signal.aborted || performance.now() < quietUntil) return
    quietUntil = performance.now() + QUIET
    log.warn(
      { event: 'webhook_delivery_error', error },
      'deliveries of webhooks wait for the control database',
    )
  }

  function run(work: () => Promise<void>): void {
    const promise: Promise<void> = work()
      .catch(complain)
      .finally(() => running.delete(promise))
    running.add(promise)
  }

  function coalesced(work: () => Promise<void>): () => void {
    let isRunning = false
    let isAskedAgain = false
    return function ask() {
      isAskedAgain = isRunning
      if (isRunning) return
      isRunning = true
      run(() =>
        work().finally(() => {
          isRunning = false
          if (isAskedAgain) ask()
        }),
      )
    }
  }

  return {
    run,
    coalesced,
    async settle() {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
