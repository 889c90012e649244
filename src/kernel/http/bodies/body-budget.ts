import { edge, retryAfter } from '../failures.ts'

/** The memory of request bodies in this process, from their first byte until their answers are closed. */
type BodyBudget = {
  /** Starts to count a body that is still arriving. */
  open(body: ArrivingBody): BodyHold
  /** Bytes that all bodies take now. */
  held(): number
}

type ArrivingBody = {
  /** The bodies of one payer share half of the budget. */
  readonly payer: string
  /** Aborts the body when there is no room. */
  breakOff(refusal: Error): void
}

export type BodyHold = {
  /** Counts further bytes. Throws the failure for the caller when there is no room. */
  take(bytes: number): void
  /** The body is complete, and its processing takes this many bytes. Throws as `take` does. */
  settle(bytes: number): void
  /** Returns all its bytes to the budget. */
  release(): void
}

type BudgetOptions = {
  /** Bytes. */
  readonly max: number
  /** Bytes a second. */
  readonly rate: number
  /** Milliseconds. */
  readonly now: () => number
  readonly onRefusal: () => void
}

type HeldBody = ArrivingBody & { taken: number; arrived: number; isArriving: boolean; readonly since: number }

/** Time before a new body can count as slow, milliseconds. */
const BEGINNING = 1_000

/**
 * One payer may take half at most, so that none locks out the others. Callers could send only the beginnings of bodies:
 * so when room is missing, in total or in a payer's half, bodies that arrive more slowly than `rate` are aborted first.
 */
export function createBodyBudget({ max, rate, now, onRefusal }: BudgetOptions): BodyBudget {
  const share = Math.floor(max / 2)
  const ledger = createLedger()

  function take(entry: HeldBody, bytes: number): void {
    // Bytes that arrive after a release are not counted.
    if (!ledger.has(entry)) return
    if (entry.taken + bytes > share) throw tooHeavy(share)
    const { payer } = entry
    while (ledger.of(payer) + bytes > share) abortSlowest((other) => other.payer === payer && other !== entry)
    while (ledger.total() + bytes > max) abortSlowest((other) => other !== entry)
    ledger.add(entry, bytes)
  }

  /** Aborts the slowest body that may go. Throws the failure for the caller when none is slow. */
  function abortSlowest(mayGo: (entry: HeldBody) => boolean): void {
    const slow = (entry: HeldBody) => entry.isArriving && rateOf(entry) < rate && mayGo(entry)
    const slowest = ledger.lowest(slow, rateOf)
    if (slowest === undefined) throw noRoom()
    ledger.remove(slowest)
    slowest.breakOff(noRoom())
  }

  function noRoom(): Error {
    onRefusal()
    return busy()
  }

  const rateOf = ({ arrived, since }: HeldBody): number =>
    now() - since < BEGINNING ? Number.POSITIVE_INFINITY : (arrived * 1_000) / (now() - since)

  return {
    held: ledger.total,
    open(body) {
      const entry: HeldBody = { ...body, taken: 0, arrived: 0, isArriving: true, since: now() }
      ledger.add(entry, 0)
      return {
        take(bytes) {
          take(entry, bytes)
          entry.arrived += bytes
        },
        settle(bytes) {
          entry.isArriving = false
          take(entry, bytes - entry.taken)
        },
        release: () => ledger.remove(entry),
      }
    },
  }
}

/** The bodies that are counted, with their bytes in total and of each payer. */
function createLedger() {
  const entries = new Set<HeldBody>()
  const byPayer = new Map<string, number>()
  let total = 0
  const count = (entry: HeldBody, bytes: number): void => {
    const { payer } = entry
    const ofPayer = (byPayer.get(payer) ?? 0) + bytes
    if (ofPayer === 0) byPayer.delete(payer)
    else byPayer.set(payer, ofPayer)
    entry.taken += bytes
    total += bytes
  }
  return {
    total: () => total,
    of: (payer: string) => byPayer.get(payer) ?? 0,
    has: (entry: HeldBody) => entries.has(entry),
    add(entry: HeldBody, bytes: number) {
      entries.add(entry)
      count(entry, bytes)
    },
    remove(entry: HeldBody) {
      if (entries.delete(entry)) count(entry, -entry.taken)
    },
    lowest(
      includes: (entry: HeldBody) => boolean,
      rateOf: (entry: HeldBody) => number,
    ): HeldBody | undefined {
      let lowest: HeldBody | undefined
      for (const entry of entries)
        if (includes(entry) && (lowest === undefined || rateOf(entry) < rateOf(lowest))) lowest = entry
      return lowest
    },
  }
}

const busy = () =>
  edge('service_unavailable', {
    message: 'Too many large requests at once; try again in a moment',
    hint: 'The bodies of running requests take all the memory that limits.bodies allows',
    headers: retryAfter(1),
  })

const tooHeavy = (share: number) =>
  edge('payload_too_large', {
    hint: `Reading the body takes more than ${share} bytes of memory, half of limits.bodies; send it in parts`,
    details: { maximum_bytes: share },
  })
