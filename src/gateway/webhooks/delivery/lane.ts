import type { AttemptResult } from './attempt.ts'
import { MAX_IN_FLIGHT, type Pace, roomFor, type Tally } from './places.ts'
import type { ClaimedDelivery } from './store.ts'

/** A quick answer takes at most so long, milliseconds. */
const QUICK_MS = 500

/** After so many failures in a row a lane makes at most 10 attempts a second, until one succeeds. */
const PAUSING_FAILURES = 10
const PAUSE = 1_000

/** A lane has a timer for what is due within this time; the rest waits for the poll, milliseconds. */
const SOON = 60_000

/**
 * The deliveries to one webhook that this process has claimed, and how its endpoint does. A claim waits, is in flight until the endpoint has
 * answered, and is held until its outcome is written.
 */
export class Lane {
  readonly webhookId: string
  readonly #tally: Tally
  /** Called when there may be due deliveries, or room again. */
  readonly #onDue: () => void
  readonly #waiting: ClaimedDelivery[] = []
  #inFlight = 0
  #unwritten = 0
  #pace: Pace = 'quick'
  /** Failed attempts in a row, as this process has seen them; undefined before the first attempt. */
  #failures: number | undefined
  /** Milliseconds that its last answer took. */
  #usualMs = 0
  /** By performance.now(): no claims before. */
  #pausedUntil = 0
  #timer: { readonly at: number; readonly handle: NodeJS.Timeout } | undefined

  constructor(webhookId: string, tally: Tally, onDue: () => void) {
    this.webhookId = webhookId
    this.#tally = tally
    this.#onDue = onDue
    tally.quick.lanes++
  }

  get pace(): Pace {
    return this.#pace
  }

  /** The number of deliveries that it may claim now. */
  get room(): number {
    if (performance.now() < this.#pausedUntil) return 0
    const claimsAhead = this.#pace === 'quick' && this.#failures === 0
    return roomFor({ pace: this.#pace, held: this.#held, claimsAhead }, this.#tally)
  }

  get #held(): number {
    return this.#waiting.length + this.#inFlight + this.#unwritten
  }

  /** It holds nothing, and nothing is due soon. */
  get isIdle(): boolean {
    return this.#held === 0 && this.#timer === undefined
  }

  /** An attempt that takes longer makes the lane silent until it ends, milliseconds. */
  get patience(): number {
    return Math.max(QUICK_MS, 3 * this.#usualMs)
  }

  /** These deliveries were claimed, and wait. */
  take(claimed: readonly ClaimedDelivery[]): void {
    this.#waiting.push(...claimed)
    this.#tally[this.#pace].held += claimed.length
  }

  /** The delivery to attempt next; undefined when none waits, or the endpoint has as many requests as it may have at once. */
  begin(): ClaimedDelivery | undefined {
    if (this.#inFlight >= MAX_IN_FLIGHT) return undefined
    const next = this.#waiting.shift()
    if (next !== undefined) this.#inFlight++
    return next
  }

  /** A request has ended, or none was made. */
  end(): void {
    this.#inFlight--
    this.#unwritten++
  }

  /** The outcome of a request is written, or its claim released. */
  settle(): void {
    this.#unwritten--
    this.#tally[this.#pace].held--
  }

  /** Remembers how the endpoint does. Returns the claims to release: only a quick lane claims ahead. */
  learn({ isSuccess, responseStatus, durationMs }: AttemptResult): readonly ClaimedDelivery[] {
    this.#failures = isSuccess ? 0 : (this.#failures ?? 0) + 1
    if (this.#failures >= PAUSING_FAILURES) {
      this.#pausedUntil = performance.now() + PAUSE
      this.expect(PAUSE)
    }
    if (responseStatus !== null) this.#usualMs = durationMs
    // A refused connection takes no place for long.
    if (durationMs <= QUICK_MS) return this.#go('quick')
    return this.#go(responseStatus === null ? 'silent' : 'unhurried')
  }

  /**
   * A request takes longer than its patience. The endpoint may never answer, and keeps only the requests that it has: others need the places.
   * Returns the claims to release.
   */
  suspect(): readonly ClaimedDelivery[] {
    return this.#go('silent')
  }

  /** No longer holds the claims that wait, and returns them. */
  drop(): readonly ClaimedDelivery[] {
    this.#tally[this.#pace].held -= this.#waiting.length
    return this.#waiting.splice(0)
  }

  /** A delivery is due after so many milliseconds. */
  expect(delay: number): void {
    if (delay > SOON) return
    const at = performance.now() + Math.max(0, delay)
    if (this.#timer !== undefined && this.#timer.at <= at) return
    clearTimeout(this.#timer?.handle)
    const ring = () => {
      this.#timer = undefined
      // Each failure makes a pause longer, and timers ring a little early.
      const left = Math.ceil(this.#pausedUntil - performance.now())
      if (left > 0) this.expect(left)
      else this.#onDue()
    }
    this.#timer = { at, handle: setTimeout(ring, delay).unref() }
  }

  /** Ends a pause. */
  resume(): void {
    this.#pausedUntil = 0
  }

  /** The process forgets the lane. */
  leave(): void {
    this.#tally[this.#pace].lanes--
  }

  #go(pace: Pace): readonly ClaimedDelivery[] {
    const from = this.#tally[this.#pace]
    const to = this.#tally[pace]
    from.lanes--
    from.held -= this.#held
    to.lanes++
    to.held += this.#held
    this.#pace = pace
    return pace === 'quick' ? [] : this.drop()
  }
}
