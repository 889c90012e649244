import type { Log } from './log.ts'

/** Work for a caller that takes time: an answer that is being sent, or a long read (gateway.md 18). */
export type OpenStream = {
  /** For the log. */
  readonly facts: Readonly<Record<string, unknown>>
  /** Throws when it may not go on. It is asked each second, and answers from memory while nothing has changed. */
  mayGoOn(): Promise<void> | void
  /** Ends it unfinished, for this reason. */
  end(reason: Error): void
}

export type OpenStreams = {
  /** Asks until the returned function is called, or the stream may not go on. */
  watch(stream: OpenStream): () => void
}

/** Why a stream has ended that its caller was allowed to have. Other reasons are failures: those of a new request of the caller. */
export class StreamEnd extends Error {
  readonly code: 'slow_reader' | 'stream_time' | 'unknown_caller'
  constructor(code: StreamEnd['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** Milliseconds, as all of these. */
const ASK_EVERY = 1_000
/** A caller about whom nothing was found out for so long is not known any more. */
const PATIENCE = 5_000

type WatchedStream = { readonly stream: OpenStream; askedAt: number | undefined }

/** The open streams of a process, with one timer for all of them. */
export function createOpenStreams(log: Log): OpenStreams {
  const entries = new Set<WatchedStream>()
  let timer: NodeJS.Timeout | undefined

  function leave(entry: WatchedStream): boolean {
    const wasOpen = entries.delete(entry)
    if (entries.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
    return wasOpen
  }

  function end(entry: WatchedStream, reason: Error): void {
    if (!leave(entry)) return
    const { stream } = entry
    const { code } = reason as { readonly code?: unknown } // failures and ends have one
    const facts = { event: 'stream_ended', ...stream.facts }
    if (typeof code === 'string')
      log.info({ ...facts, reason: code }, `a stream was ended unfinished: ${reason.message}`)
    else log.error({ ...facts, error: reason }, 'a stream was ended unfinished, since its check failed')
    stream.end(reason)
  }

  async function ask(entry: WatchedStream, asking: Promise<void>): Promise<void> {
    entry.askedAt = performance.now()
    await asking
    entry.askedAt = undefined
  }

  function look(entry: WatchedStream): void {
    if (entry.askedAt !== undefined) {
      if (performance.now() - entry.askedAt > PATIENCE)
        end(entry, new StreamEnd('unknown_caller', 'it could not be found out whether its caller still may'))
      return
    }
    try {
      const asking = entry.stream.mayGoOn()
      if (asking !== undefined) ask(entry, asking).catch((error: Error) => end(entry, error))
    } catch (error) {
      end(entry, error as Error) // nothing else is thrown
    }
  }

  return {
    watch(stream) {
      const entry: WatchedStream = { stream, askedAt: undefined }
      entries.add(entry)
      timer ??= setInterval(() => {
        for (const open of entries) look(open)
      }, ASK_EVERY).unref()
      return () => void leave(entry)
    },
  }
}
