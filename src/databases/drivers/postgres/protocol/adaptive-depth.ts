/** Milliseconds of work that may stand in front of a read. */
const QUEUED_WORK = 2
/** One answer counts for a sixteenth, and for no more than this: the process or the machine may have been elsewhere. */
const SHARE = 1 / 16
const LONGEST_WORK = 8
const MOST_DEPTH = 32
/** What a read is taken for before any is known. */
const FIRST_GUESS = 0.2

/** How quickly a server answers on one connection, where statements are sent before those in front of them are answered. */
export class AdaptiveDepth {
  /** Milliseconds that a statement makes the one behind it wait. */
  #work = FIRST_GUESS
  /** The least that an answer has taken, most of it on the way. */
  #quickest = Number.POSITIVE_INFINITY
  #lastAnswer = 0

  /** When the server may have begun with what was sent then: when it had arrived, and all before it was answered. */
  begun(sentAt: number): number {
    // Where nothing has been answered yet the way is not known, and a statement that never ends must not be taken for a long way.
    const way = Number.isFinite(this.#quickest) ? this.#quickest : 0
    return Math.max(this.#lastAnswer, sentAt + way)
  }

  answered(sentAt: number, now: number): void {
    this.#quickest = Math.min(this.#quickest, now - sentAt)
    const work = Math.min(LONGEST_WORK, now - this.begun(sentAt))
    this.#work += SHARE * (Math.max(0, work) - this.#work)
    this.#lastAnswer = now
  }

  /** How many may be under way at once. */
  current(): number {
    return Math.max(1, Math.min(MOST_DEPTH, Math.floor(QUEUED_WORK / this.#work)))
  }
}
