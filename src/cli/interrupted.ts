/** Aborts at the first Ctrl-C or SIGTERM. A second signal ends the process. */
export function interrupted(): AbortSignal {
  const interruption = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort())
  return interruption.signal
}
