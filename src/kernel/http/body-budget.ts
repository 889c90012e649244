import { edge } from './failures.ts'

/** The memory that bodies of requests take in this process, from their first byte until their answers are closed. */
export type BodyBudget = {
  /** Begins to count a body that is still arriving. */
  open(body: ArrivingBody): BodyHold
  /** Bytes that all of them take now. */
  held(): number
}

export type ArrivingBody = {
  /** Those of one payer share half of the budget. */
  readonly payer: string
  /** Ends it when there is no room for it. */
  breakOff(refusal: Error): void
}

export type BodyHold = {
  /** So many bytes more have arrived. Throws what the caller is told when there is no room for them. */
  take(bytes: number): void
  /** It is here whole, and takes so many bytes as it will be worked on. Throws as `take` does. */
  settle(bytes: number): void
  /** Gives back all that it takes. */
  release(): void
}

export type BudgetOptions = {
  /** Bytes. */
  readonly most: number
  /** Bytes a second. */
  readonly rate: number
  /** Milliseconds. */
  readonly now: () => number
  readonly onRefusal: () => void
}

type Entry = ArrivingBody & { taken: number; arrived: number; isArriving: boolean; readonly since: number }

/** A body that has just begun is not slow yet, milliseconds. */
const BEGINNING = 1_000

/**
 * One payer takes half at most, so that none alone locks out the others. Callers could send the beginnings of bodies and no more:
 * where room is missing, in all or in the half of a payer, those that arrive more slowly than `rate` are broken off first.
 */
export function createBodyBudget({ most, rate, now, onRefusal }: BudgetOptions): BodyBudget {
  const share = Math.floor(most / 2)
  const entries = new Set<Entry>()
  const byPayer = new Map<string, number>()
  let total = 0

  function add(entry: Entry, bytes: number): void {
    const { payer } = entry
    const own = (byPayer.get(payer) ?? 0) + bytes
    if (own === 0) byPayer.delete(payer)
    else byPayer.set(payer, own)
    entry.taken += bytes
    total += bytes
  }

  function take(entry: Entry, bytes: number): void {
    // Of a caller who has left nothing is counted any more.
    if (!entries.has(entry)) return
    if (entry.taken + bytes > share) throw tooHeavy(share)
    const { payer } = entry
    while ((byPayer.get(payer) ?? 0) + bytes > share)
      breakOffSlowest((other) => other.payer === payer && other !== entry)
    while (total + bytes > most) breakOffSlowest((other) => other !== entry)
    add(entry, bytes)
  }

  function release(entry: Entry): void {
    if (entries.delete(entry)) add(entry, -entry.taken)
  }

  /** Of those that may go. Throws what the caller is told when none is slow. */
  function breakOffSlowest(mayGo: (entry: Entry) => boolean): void {
    let slowest: Entry | undefined
    for (const entry of entries) {
      const isSlow = entry.isArriving && rateOf(entry) < rate && mayGo(entry)
      if (isSlow && (slowest === undefined || rateOf(entry) < rateOf(slowest))) slowest = entry
    }
    if (slowest === undefined) throw noRoom()
    release(slowest)
    slowest.breakOff(noRoom())
  }

  function noRoom(): Error {
    onRefusal()
    return busy()
  }

  const rateOf = ({ arrived, since }: Entry): number =>
    now() - since < BEGINNING ? Number.POSITIVE_INFINITY : (arrived * 1_000) / (now() - since)

  return {
    held: () => total,
    open(body) {
      const entry: Entry = { ...body, taken: 0, arrived: 0, isArriving: true, since: now() }
      entries.add(entry)
      return {
        take(bytes) {
          take(entry, bytes)
          entry.arrived += bytes
        },
        settle(bytes) {
          entry.isArriving = false
          take(entry, bytes - entry.taken)
        },
        release: () => release(entry),
      }
    },
  }
}

const busy = () =>
  edge('service_unavailable', {
    message: 'Too many large requests at once; try again in a moment',
    hint: 'The bodies that are being worked on take all the memory that they may (limits.bodies)',
    headers: { 'retry-after': '1', 'x-retry-after': '1' },
  })

const tooHeavy = (share: number) =>
  edge('payload_too_large', {
    hint: `The body takes more than ${share} bytes of memory once it is read, which is half of limits.bodies; send it in parts`,
    details: { maximum_bytes: share },
  })
