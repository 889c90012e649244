import { bytesOf, type Connection, type Outcome, openConnection } from './connection.ts'
import type { Load } from './load.ts'

/** Answers that are under way when the time is over may take so long, in milliseconds. */
const PATIENCE = 30_000

/** A place for one request at a time. Its connection is replaced when it is lost. */
export type Slot = {
  connection: Connection | undefined
  /** Kind and intended time of the request under way. */
  kind: string | undefined
  intended: number
  isBusy: boolean
  /** When its last answer came. */
  freeSince: number
}

export type Tally = {
  done: number
  failed: number
  readonly failures: Record<string, number>
  readonly kinds: Record<string, number>
}

/** The connections of a run, and what they have received. `onFree` is called with each slot that can send again. */
export async function openSlots(load: Load, onFree: (slot: Slot) => void) {
  const requests = load.requests.map((request) => ({ kind: request.kind, bytes: bytesOf(load, request) }))
  const url = new URL(load.url)
  const tally: Tally = { done: 0, failed: 0, failures: {}, kinds: {} }
  let [sent, isOver] = [0, false]
  const fail = (what: Outcome, kind?: string) => {
    tally.failed++
    addTo(tally.failures, kind === undefined ? `${what}` : `${kind}: ${what}`)
  }
  const succeed = (kind: string | undefined) => {
    tally.done++
    if (kind !== undefined) addTo(tally.kinds, kind)
  }
  const receive = (slot: Slot, outcome: Outcome) => {
    if (isOver) return
    if (slot.isBusy && typeof outcome === 'number' && outcome < 300) succeed(slot.kind)
    else if (slot.isBusy) fail(outcome, slot.kind)
    slot.isBusy = false
    slot.freeSince = performance.now()
    if (typeof outcome === 'number') return onFree(slot)
    slot.connection = undefined
    open(slot).then(
      () => !isOver && onFree(slot),
      (error: Outcome) => fail(error),
    )
  }
  const open = async (slot: Slot) => {
    slot.connection = await openConnection(url, (outcome) => receive(slot, outcome))
  }
  const slots = await Promise.all(
    Array.from({ length: load.connections }, async () => {
      const slot: Slot = { connection: undefined, kind: undefined, intended: 0, isBusy: false, freeSince: 0 }
      await open(slot)
      return slot
    }),
  )
  return {
    slots,
    tally,
    hasMore: () => load.once !== true || sent < requests.length,
    send(slot: Slot, intended: number): void {
      const request = requests[sent++ % requests.length]
      if (request === undefined) throw new Error('a load needs requests')
      Object.assign(slot, { kind: request.kind, intended, isBusy: true })
      slot.connection?.send(request.bytes)
    },
    /** Waits for the answers under way and closes the connections. */
    async close(): Promise<void> {
      const until = performance.now() + PATIENCE
      const busy = () => slots.filter(({ isBusy }) => isBusy)
      while (busy().length > 0 && performance.now() < until)
        await new Promise((resolve) => setTimeout(resolve, 1))
      for (const { kind } of busy()) fail('no answer', kind)
      isOver = true
      for (const { connection } of slots) connection?.end()
    },
  }
}

function addTo(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
