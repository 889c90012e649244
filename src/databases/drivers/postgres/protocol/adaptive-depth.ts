/** Milliseconds of work that may be queued before a read. */
const QUEUED_WORK = 2
/** An answer counts for a sixteenth of the average and for at most this long, because the process or the machine may have been busy. */
const SHARE = 1 / 16
const MAX_WORK = 8
const MAX_DEPTH = 32
/** The assumed time of a read before any is measured. */
const FIRST_GUESS = 0.2

/** Measures how fast a server answers on a connection where statements are pipelined. */
export class AdaptiveDepth {
  /** Milliseconds that a statement delays the next one. */
  #work = FIRST_GUESS
  /** The shortest time of an answer, which is mostly the round trip. */
  #quickest = Number.POSITIVE_INFINITY
  #lastAnswer = 0

  /** When the server can have begun with a statement sent then: after it arrived and all earlier ones were answered. */
  begun(sentAt: number): number {
    // Before the first answer the round trip is unknown, and an endless statement must not count as a long round trip.
    const way = Number.isFinite(this.#quickest) ? this.#quickest : 0
    return Math.max(this.#lastAnswer, sentAt + way)
  }

  answered(sentAt: number, now: number): void {
    this.#quickest = Math.min(this.#quickest, now - sentAt)
    const work = Math.min(MAX_WORK, now - this.begun(sentAt))
    this.#work += SHARE * (Math.max(0, work) - this.#work)
    this.#lastAnswer = now
  }

  /** How many statements may be under way at once. */
  current(): number {
    return Math.max(1, Math.min(MAX_DEPTH, Math.floor(QUEUED_WORK / this.#work)))
  }
}
