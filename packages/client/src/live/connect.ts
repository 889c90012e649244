import { broken, refusal } from '../failure.ts'
import { toJson } from '../json.ts'
import { type Connection, jsonOf, send } from '../request.ts'
import { createEventParser, type EventParser, type StreamEvent } from './event-parser.ts'

type Connecting = {
  readonly connection: Connection
  readonly headers: Readonly<Record<string, string>>
  readonly body: object
  readonly lastId: string
  /** Ends the connection. */
  readonly leaving: AbortController
  readonly opened: () => void
  /** Takes events that came together. The parser has the id after them, and the time to wait before the next connection. */
  readonly take: (events: readonly StreamEvent[], parser: EventParser) => void
}

/** Milliseconds without a byte after which a connection counts as lost. The service writes every 15 seconds. */
const SILENCE = 40_000

/** Reads a stream by one connection. Resolves when the service has ended it; rejects when it refuses, or the connection breaks. */
export async function connect(parts: Connecting): Promise<void> {
  const { connection, leaving, lastId, take } = parts
  let timer: ReturnType<typeof setTimeout> | undefined
  const heard = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => leaving.abort(broken('silence')), SILENCE)
  }
  try {
    heard()
    const response = await send(connection, {
      path: '/realtime',
      headers: {
        ...parts.headers,
        accept: 'text/event-stream',
        ...(lastId !== '' && { 'last-event-id': lastId }),
      },
      body: toJson(parts.body),
      signal: leaving.signal,
    })
    if (!response.ok || response.body === null)
      throw refusal(response, await jsonOf(response, connection.numbers))
    parts.opened()
    const parser = createEventParser()
    const reader = response.body.getReader()
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      if (leaving.signal.aborted) return
      heard()
      take(parser.push(read.value), parser)
    }
  } finally {
    clearTimeout(timer)
    leaving.abort()
  }
}
