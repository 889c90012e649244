/** A body that is here whole and waits for its reader. */
export type WaitingResponse = {
  readonly parts: Iterable<Buffer>
  /** Bytes that its reader has taken by now. */
  taken(): number
  /** Ends it, and what it holds is free. */
  breakOff(): void
}

/** Bodies that are here whole together take so many bytes of memory at most. */
export type ResponseBudget = {
  /** Breaks off those that are read most slowly, so that there is room for this one. Returns what gives its room back. */
  hold(body: WaitingResponse): () => void
}

/** A body that has just begun is not slow yet: what the system takes at once, and the time in which it does. */
const CREDIT = 1_048_576
const BEGINNING = 1_000

type Entry = WaitingResponse & { readonly since: number; readonly release: () => void }

/** `now` in milliseconds. */
export function createResponseBudget(most: number, now: () => number): ResponseBudget {
  const entries = new Set<Entry>()
  /** Answers that are given again share theirs. */
  const users = new Map<ArrayBufferLike, number>()
  let total = 0

  function hold(body: WaitingResponse): () => void {
    const memory = new Set([...body.parts].map(({ buffer }) => buffer))
    for (const buffer of memory) take(buffer)
    const entry: Entry = {
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
    while (total > most) {
      const slowest = [...entries].reduce<Entry | undefined>(
        (slow, entry) => (slow === undefined || rateOf(entry) < rateOf(slow) ? entry : slow),
        undefined,
      )
      if (slowest === undefined) return
      slowest.release()
      slowest.breakOff()
    }
  }

  const rateOf = ({ taken, since }: Entry): number => (taken() + CREDIT) / (now() - since + BEGINNING)

  return { hold }
}
