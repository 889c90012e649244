/** Callers who wait for their turn, first come, first served: a bounded number of them, each for a bounded time. */
type BoundedQueue<Turn, Ticket = undefined> = {
  /** Waits for the turn that `give` brings. Rejects at once when the queue is full, and later when the time is over. */
  wait(ticket: Ticket, weight?: number): Promise<Turn>
  /** Throws what a caller of this weight would meet now. */
  expectRoom(weight?: number): void
  /** Takes the first caller out of the queue; undefined when it is empty. */
  next(): Waiter<Turn, Ticket> | undefined
  /** Ends the waiting of those that `which` chooses. */
  reject(error: () => unknown, which?: (ticket: Ticket) => boolean): void
  length(): number
}

type Waiter<Turn, Ticket> = { readonly ticket: Ticket; give(turn: Turn): void }

export type QueueOptions = {
  /** The sum of the weights of all who wait; a caller weighs 1 unless it says otherwise. */
  readonly max: number
  /** Milliseconds; without it callers wait for as long as it takes. */
  readonly patience?: number
  /** The failure of a caller who finds no room, or waits in vain. */
  readonly refusal: () => unknown
}

type QueueEntry<Turn, Ticket> = Waiter<Turn, Ticket> & {
  readonly weight: number
  readonly timer: NodeJS.Timeout | undefined
  readonly reject: (error: unknown) => void
}

export function createBoundedQueue<Turn = void, Ticket = undefined>(
  options: QueueOptions,
): BoundedQueue<Turn, Ticket> {
  const { max, patience, refusal } = options
  const entries = new Set<QueueEntry<Turn, Ticket>>()
  let held = 0

  function expectRoom(weight = 1): void {
    if (held + weight > max) throw refusal()
  }

  async function wait(ticket: Ticket, weight = 1): Promise<Turn> {
    expectRoom(weight)
    const { promise, resolve, reject } = Promise.withResolvers<Turn>()
    const timer = patience === undefined ? undefined : setTimeout(() => rejectOne(entry, refusal()), patience)
    const entry: QueueEntry<Turn, Ticket> = { ticket, weight, timer, give: resolve, reject }
    entries.add(entry)
    held += weight
    return promise
  }

  function remove(entry: QueueEntry<Turn, Ticket>): void {
    clearTimeout(entry.timer)
    entries.delete(entry)
    held -= entry.weight
  }

  function rejectOne(entry: QueueEntry<Turn, Ticket>, error: unknown): void {
    remove(entry)
    entry.reject(error)
  }

  function next(): QueueEntry<Turn, Ticket> | undefined {
    const [first] = entries
    if (first !== undefined) remove(first)
    return first
  }

  function reject(error: () => unknown, which: (ticket: Ticket) => boolean = () => true): void {
    for (const entry of entries) if (which(entry.ticket)) rejectOne(entry, error())
  }

  return { wait, expectRoom, next, reject, length: () => entries.size }
}
