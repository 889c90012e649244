import type { IncomingMessage } from 'node:http'
import type { App } from '../app.ts'
import { createReaderPace } from '../connections/long-responses.ts'
import { edge } from '../failures.ts'
import { encodingRefusal } from './body.ts'
import { bodyTooLarge } from './collect-body.ts'

/** Hands the body of the routes that follow to their handlers as a stream, whatever its content type is. */
export function streamBodies(app: App): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, payload, done) =>
    done(encodingRefusal(request.headers) ?? null, payload),
  )
}

type Bounds = {
  /** Bytes. */
  readonly limit: number
  /** Bytes a second that the sender has to reach, while the reader waits for it. */
  readonly rate: number
  /** Milliseconds. */
  readonly now: () => number
  /** Aborted when no more is wanted; the rest of the body is dropped. */
  readonly signal: AbortSignal
}

/**
 * The chunks of a body as they are taken, so that a slow reader slows its sender down. Throws when the body is too long or too slow, and when it breaks
 * off. The request stays open for the answer.
 */
export async function* chunksOf(
  body: IncomingMessage,
  { limit, rate, now, signal }: Bounds,
): AsyncGenerator<Buffer> {
  const declared = Number(body.headers['content-length'] ?? 0)
  if (declared > limit) throw bodyTooLarge(limit)
  const pace = createReaderPace(rate, now)
  let failure: Error | undefined
  let wake = () => {}
  const fail = (error: Error) => {
    failure ??= error
    wake()
  }
  const onReadable = () => wake()
  signal.addEventListener('abort', onReadable)
  const onClose = () => {
    if (!body.readableEnded) fail(brokenOff())
  }
  const timer = setInterval(() => {
    if (pace.isTooSlow()) fail(edge('request_timeout'))
  }, 1_000).unref()
  body.on('readable', onReadable).on('end', onReadable).on('error', fail).on('close', onClose)
  let length = 0
  try {
    while (failure === undefined) {
      if (signal.aborted) return
      const chunk: Buffer | null = body.read()
      if (chunk !== null) {
        length += chunk.length
        if (length > limit) throw bodyTooLarge(limit)
        pace.take(chunk.length)
        yield chunk
      } else if (body.readableEnded) return
      else if (body.destroyed) throw brokenOff()
      else {
        pace.offer()
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
    throw failure
  } finally {
    clearInterval(timer)
    body.off('readable', onReadable).off('end', onReadable).off('error', fail).off('close', onClose)
    // The sender reads its answer only when the rest of the body is out.
    if (!body.destroyed) body.resume()
  }
}

const brokenOff = () => edge('validation_error', { message: 'The body broke off' })
