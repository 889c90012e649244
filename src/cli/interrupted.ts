/**
 * A signal within this time of the first is the same one, milliseconds: a terminal signals all processes, and npm passes it on again, on a busy
 * machine some time later.
 */
const ECHO_MS = 1_000

type Interruptible = {
  /** Acts like a signal. */
  interrupt(signal: NodeJS.Signals): void
  /** Restores the effect that signals have by default. */
  end(): void
}

/** Calls `stop` at the first Ctrl-C or SIGTERM. A second one ends the process. */
export function onInterrupt(stop: (signal: NodeJS.Signals) => void): Interruptible {
  let first: number | undefined
  const interrupt = (signal: NodeJS.Signals) => {
    if (first === undefined) {
      first = performance.now()
      stop(signal)
    } else if (performance.now() - first > ECHO_MS) process.exit(1)
  }
  for (const signal of SIGNALS) process.on(signal, interrupt)
  const end = () => {
    for (const signal of SIGNALS) process.off(signal, interrupt)
  }
  return { interrupt, end }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Aborts at the first Ctrl-C or SIGTERM. A second one ends the process. */
export function interrupted(): AbortSignal {
  const interruption = new AbortController()
  onInterrupt(() => interruption.abort())
  return interruption.signal
}
