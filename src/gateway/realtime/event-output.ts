import { Readable } from 'node:stream'

/** The body of a stream of events. */
export type EventOutput = {
  readonly body: Readable
  write(text: string | Buffer): void
  /** Bytes that the connection has not taken yet. */
  queued(): number
  /** Bytes that it has taken so far. */
  taken(): number
  /** Resolves when the connection takes more, or has ended. */
  drained(): Promise<void>
  /** The last text. */
  end(text: string): void
}

/** Bytes that are written without waiting. */
const AHEAD = 65_536

export function createEventOutput(): EventOutput {
  let waiting: PromiseWithResolvers<void> | undefined
  let written = 0
  const take = (): void => {
    waiting?.resolve()
    waiting = undefined
  }
  const push = (text: string | Buffer): void => {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    written += bytes.length
    body.push(bytes)
  }
  const body = new Readable({ highWaterMark: AHEAD, read: take })
  body.once('close', take)
  return {
    body,
    write(text) {
      if (!body.destroyed) push(text)
    },
    queued: () => body.readableLength,
    taken: () => written - body.readableLength,
    drained() {
      if (body.destroyed || body.readableLength < AHEAD) return Promise.resolve()
      waiting ??= Promise.withResolvers<void>()
      return waiting.promise
    },
    end(text) {
      if (body.destroyed) return
      push(text)
      body.push(null)
    },
  }
}
