/** A `fetch` whose streams can be cut, and ask again at once. */
export type CutConnections = {
  readonly fetch: typeof fetch
  /** Cuts what is open. */
  cut(): void
  /** While it is off, nothing is reached. */
  setOffline(isOffline: boolean): void
  /** Headers of the requests so far. */
  readonly asked: readonly Headers[]
}

export function createCutConnections(): CutConnections {
  let cutter = new AbortController()
  let isOff = false
  const asked: Headers[] = []
  const cut = (): void => {
    cutter.abort(new Error('cut'))
    cutter = new AbortController()
  }
  return {
    asked,
    cut,
    setOffline(isOffline) {
      isOff = isOffline
      if (isOff) cut()
    },
    async fetch(input, init = {}) {
      if (isOff) throw new TypeError('fetch failed')
      asked.push(new Headers(init.headers))
      const signals = [cutter.signal, ...(init.signal ? [init.signal] : [])]
      const answer = await fetch(input, { ...init, signal: AbortSignal.any(signals) })
      return new Response(answer.body?.pipeThrough(withoutWaiting()) ?? null, answer)
    },
  }
}

/** The service wants two seconds between two connections. */
function withoutWaiting(): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      const text = Buffer.from(chunk).toString('latin1').replace('retry: 2000', 'retry: 10')
      controller.enqueue(Buffer.from(text, 'latin1'))
    },
  })
}
