/** Aborted by Ctrl-C or SIGTERM, so that a run can remove what it made before it ends. A second Ctrl-C ends the process at once. */
export function onInterruption(): AbortSignal {
  const interruption = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => interruption.abort(new Error('interrupted')))
  return interruption.signal
}
