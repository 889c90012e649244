/** The work's result. When the signal comes first, throws its reason at once and ignores how the work ends. */
export async function unlessAborted<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) return work
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  // The signal lives longer than the work, so its listener is removed.
  signal.addEventListener('abort', abort, { once: true })
  try {
    if (signal.aborted) abort()
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
