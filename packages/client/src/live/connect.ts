import { toJson } from '../json.ts'
import type { Connection } from '../request.ts'
import { createEventParser, type StreamEvent } from './event-parser.ts'
import { refusedStream, streamBroken } from './stream-failure.ts'

type Connecting = {
  readonly connection: Connection
  readonly headers: Record<string, string>
  readonly body: object
  readonly lastId: string
  /** Ends the connection. */
  readonly leaving: AbortController
  readonly opened: () => void
  /** Takes events that came together, the id after them, and the time to wait before the next connection. */
  readonly take: (events: readonly StreamEvent[], lastId: string, retry: number | undefined) => void
}

/** Milliseconds without a byte after which a connection counts as lost. The service writes every 15 seconds. */
const SILENCE = 40_000

/** Reads a stream by one connection. Resolves when the service has ended it; rejects when it refuses, or the connection breaks. */
export async function connect(parts: Connecting): Promise<void> {
  const { connection, leaving, lastId, take } = parts
  let timer: ReturnType<typeof setTimeout> | undefined
  const heard = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => leaving.abort(streamBroken('silence')), SILENCE)
  }
  try {
    heard()
    const response = await connection.fetch(`${connection.url}/realtime`, {
      method: 'POST',
      headers: {
        ...parts.headers,
        accept: 'text/event-stream',
        'content-type': 'application/json',
        ...(lastId !== '' && { 'last-event-id': lastId }),
      },
      body: toJson(parts.body),
      // The key must not follow to another host.
      redirect: 'manual',
      signal: leaving.signal,
    })
    if (!response.ok || response.body === null) throw await refusedStream(response, connection.numbers)
    parts.opened()
    const parser = createEventParser()
    const reader = response.body.getReader()
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      if (leaving.signal.aborted) return
      heard()
      take(parser.push(read.value), parser.lastId(), parser.retry())
    }
  } finally {
    clearTimeout(timer)
    leaving.abort()
  }
}
