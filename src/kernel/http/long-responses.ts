import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Kernel } from '../kernel.ts'
import { createResponseBudget } from './response-budget.ts'
import type { App } from './surface.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** Its reader is bounded by what they take, not by the time of a request. */
    isPaced: boolean
    /** Sends a body that is not here yet, or that is long, as fast as the caller reads it. Headers are the sender's. */
    sendLong(source: Source): FastifyReply
  }
}

/** `return()` gives free what the rest of it holds; it is called once the caller has all of it or has left. */
export type Source = Iterable<Buffer> | AsyncIterable<Buffer>

/** Above so many bytes an answer that is here whole is sent in pieces, so that it can be seen how fast it is read. */
export const LONG_RESPONSE = 1_048_576
const PIECE = 65_536
/** How many of the longest answers that are collected may wait for their readers at the same time (`limits.answer`). */
const LONGEST_HELD = 8

export function addLongResponses(app: App, { config, now }: Kernel): void {
  const { min_rate: rate, answer } = config.limits
  const held = createResponseBudget(LONGEST_HELD * answer, () => now().getTime())
  app.decorateReply('isPaced', false)
  app.decorateReply('sendLong', function (this: FastifyReply, source: Source) {
    this.isPaced = true
    const pace = createReaderPace(rate, () => now().getTime())
    // One that still flows is bounded where its rows come from.
    if (!(Symbol.asyncIterator in source)) {
      const { raw } = this
      const body = { parts: source, taken: pace.taken, breakOff: () => raw.destroy() }
      if (!raw.destroyed) raw.once('close', held.hold(body))
    }
    return this.send(bodyOf(this, source, pace))
  })
}

function bodyOf({ raw }: FastifyReply, source: Source, pace: ReaderPace): Readable {
  const chunks = iteratorOf(source)
  const timer = setInterval(() => {
    if (pace.isTooSlow()) raw.destroy()
  }, 1_000).unref()
  const release = () => {
    clearInterval(timer)
    // Not by way of the stream: it may be waiting for the next chunk, and may never have asked for the first.
    void chunks.return?.()
  }
  if (raw.destroyed) release()
  else raw.once('close', release)
  return Readable.from(pieces(chunks, pace), { objectMode: false })
}

type Chunks = Iterator<Buffer> | AsyncIterator<Buffer>

const iteratorOf = (source: Source): Chunks =>
  Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()

async function* pieces(chunks: Chunks, pace: ReaderPace): AsyncGenerator<Buffer> {
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    for (let at = 0; at < next.value.length; at += PIECE) {
      const piece = next.value.subarray(at, at + PIECE)
      pace.offer()
      yield piece
      pace.take(piece.length)
    }
  }
}

export type ReaderPace = {
  /** A piece waits for the reader. */
  offer(): void
  /** It was taken. */
  take(bytes: number): void
  isTooSlow(): boolean
  /** Bytes since the beginning. */
  taken(): number
}

/** So many seconds of the rate may be missing. */
const ARREARS = 10
/** What a fast beginning is good for later: the system takes and gives socket buffers of about this size at once. */
const CREDIT = 1_048_576

/** Whether a reader takes `rate` bytes a second. Only the time counts in which something waits for them; milliseconds. */
export function createReaderPace(rate: number, now: () => number): ReaderPace {
  let credit = ARREARS * rate
  let since: number | undefined
  let taken = 0
  const due = () => (since === undefined ? 0 : ((now() - since) / 1_000) * rate)
  return {
    offer() {
      since = now()
    },
    take(bytes) {
      credit = Math.min(ARREARS * rate + CREDIT, credit - due() + bytes)
      since = undefined
      taken += bytes
    },
    isTooSlow: () => credit < due(),
    taken: () => taken,
  }
}

/** How long the reader of an answer that was sent whole has for it, milliseconds. */
export const timeToRead = (rate: number): number => (ARREARS + LONG_RESPONSE / rate) * 1_000
