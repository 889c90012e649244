/** A complete response body that waits for its reader. */
type WaitingResponse = {
  readonly parts: Iterable<Buffer>
  /** Bytes that its reader has taken so far. */
  taken(): number
  /** Aborts the response and frees its memory. */
  breakOff(): void
}

/** Bounds the memory of all complete response bodies. */
type ResponseBudget = {
  /** Aborts the responses that are read most slowly until there is room for this one. Returns the function that frees its room. */
  hold(body: WaitingResponse): () => void
}

/** Bytes and time credited to a new response, so that it does not count as slow: socket buffers take data at once. */
const CREDIT = 1_048_576
const BEGINNING = 1_000

type HeldResponse = WaitingResponse & { readonly since: number; readonly release: () => void }

/** `now` in milliseconds. */
export function createResponseBudget(max: number, now: () => number): ResponseBudget {
  const entries = new Set<HeldResponse>()
  /** Cached answers share their buffers. */
  const users = new Map<ArrayBufferLike, number>()
  let total = 0

  function hold(body: WaitingResponse): () => void {
    const memory = new Set([...body.parts].map(({ buffer }) => buffer))
    for (const buffer of memory) take(buffer)
    const entry: HeldResponse = {
      ...body,
      since: now(),
      release() {
        if (!entries.delete(entry)) return
        for (const buffer of memory) give(buffer)
      },
    }
    makeRoom()
    entries.add(entry)
    return entry.release
  }

  function take(buffer: ArrayBufferLike): void {
    const count = users.get(buffer) ?? 0
    if (count === 0) total += buffer.byteLength
    users.set(buffer, count + 1)
  }

  function give(buffer: ArrayBufferLike): void {
    const count = users.get(buffer) ?? 0
    if (count > 1) users.set(buffer, count - 1)
    else {
      users.delete(buffer)
      total -= buffer.byteLength
    }
  }

  function makeRoom(): void {
    while (total > max) {
      const slowest = [...entries].reduce<HeldResponse | undefined>(
        (slow, entry) => (slow === undefined || rateOf(entry) < rateOf(slow) ? entry : slow),
        undefined,
      )
      if (slowest === undefined) return
      slowest.release()
      slowest.breakOff()
    }
  }

  const rateOf = ({ taken, since }: HeldResponse): number => (taken() + CREDIT) / (now() - since + BEGINNING)

  return { hold }
}
