import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Kernel } from '../../kernel.ts'
import { type OpenStream, StreamEnd } from '../../open-streams.ts'
import type { App } from '../surface.ts'
import { createResponseBudget } from './response-budget.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** Limited by the rate at which the reader takes it, not by the time of a request. */
    isPaced: boolean
    /**
     * Sends a body that is not complete yet, or long, as fast as the caller reads it. The route sets the headers. `isTimed`: for at most
     * `limits.stream_time`, the default. `isWatched`: whether the caller is watched over now; default: always.
     */
    sendLong(source: ResponseBody, how?: LongAnswer): FastifyReply
    /** Added by a surface: begins to watch over the caller of a stream. The returned function throws when the caller may have no more of it. */
    watchCaller?(): OpenStream['mayGoOn']
  }
}

type LongAnswer = { readonly isTimed?: boolean; readonly isWatched?: () => boolean }

/** `return()` releases resources; it is called when the caller has received everything or has disconnected. */
type ResponseBody = Iterable<Buffer> | AsyncIterable<Buffer>

/** Bytes. A longer complete answer is sent in pieces, to measure how fast it is read. */
export const LONG_RESPONSE = 1_048_576
const PIECE = 65_536
/** Number of answers of `limits.answer` bytes that may wait for their readers at the same time. */
const MAX_HELD = 8

export function addLongResponses(app: App, { config, now, streams }: Kernel): void {
  const { min_rate: rate, answer, stream_time: time } = config.limits
  const held = createResponseBudget(MAX_HELD * answer, () => now().getTime())
  app.decorateReply('isPaced', false)
  app.decorateReply('sendLong', function (this: FastifyReply, source: ResponseBody, how: LongAnswer = {}) {
    const { isTimed = true, isWatched = () => true } = how
    this.isPaced = true
    const pace = createReaderPace(rate, () => now().getTime())
    // A streamed answer is bounded at its source.
    if (!(Symbol.asyncIterator in source)) {
      const { raw } = this
      const body = { parts: source, taken: pace.taken, breakOff: () => raw.destroy() }
      if (!raw.destroyed) raw.once('close', held.hold(body))
    }
    const until = isTimed ? now().getTime() + time : Number.POSITIVE_INFINITY
    const watched = { pace, isWatched, hasTime: () => now().getTime() <= until }
    return this.send(bodyOf(this, source, pace, streams.watch(streamOf(this, watched))))
  })
}

type StreamLimits = {
  readonly pace: ReaderPace
  readonly isWatched: () => boolean
  readonly hasTime: () => boolean
}

function streamOf(reply: FastifyReply, { pace, isWatched, hasTime }: StreamLimits): OpenStream {
  const { request, raw } = reply
  const callerMay = reply.watchCaller?.()
  return {
    facts: { request_id: request.id, route: request.routeOptions.url },
    mayGoOn() {
      if (!hasTime()) throw new StreamEnd('stream_time', 'it has taken too long (limits.stream_time)')
      if (pace.isTooSlow()) throw new StreamEnd('slow_reader', 'its reader is too slow (limits.min_rate)')
      return isWatched() ? callerMay?.() : undefined
    },
    end() {
      // By a reset: the system would still send megabytes of what it has buffered, to a slow reader for minutes.
      raw.socket?.resetAndDestroy()
      raw.destroy()
    },
  }
}

function bodyOf(
  { raw }: FastifyReply,
  source: ResponseBody,
  pace: ReaderPace,
  unwatch: () => void,
): Readable {
  const chunks = iteratorOf(source)
  const release = () => {
    unwatch()
    // Not through the stream, which may wait for the next chunk, or may not have asked for the first one.
    void chunks.return?.()
  }
  if (raw.destroyed) release()
  else raw.once('close', release)
  return Readable.from(pieces(chunks, pace), { objectMode: false })
}

type Chunks = Iterator<Buffer> | AsyncIterator<Buffer>

const iteratorOf = (source: ResponseBody): Chunks =>
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

type ReaderPace = {
  /** A piece waits for the reader from now on. */
  offer(): void
  /** The reader has taken it. */
  take(bytes: number): void
  isTooSlow(): boolean
  /** Bytes taken so far. */
  taken(): number
}

/** Seconds that a reader may fall behind the rate. */
const ARREARS = 10
/** Largest credit of a fast start: socket buffers of about this size are filled and emptied at once. */
const CREDIT = 1_048_576

/** Measures whether a reader takes `rate` bytes a second, while a piece waits. `now` in milliseconds. */
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

/** Time for the reader of an answer that was sent at once, milliseconds. */
export const timeToRead = (rate: number): number => (ARREARS + LONG_RESPONSE / rate) * 1_000
