import assert from 'node:assert/strict'
import { type Dispatcher, request } from 'undici'

/** An event, with its data. */
export type StreamEvent = {
  readonly name: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into data of every shape
  readonly data: any
  readonly id: string | undefined
}

/** A stream of events that is being read, as a browser's EventSource does. */
export type EventStream = {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  /** All events so far. */
  readonly seen: readonly StreamEvent[]
  /** The id to resume from. */
  lastId(): string | undefined
  /** The next event of this name, or of any; skips the others. Rejects when the stream ends before. */
  next(name?: string): Promise<StreamEvent>
  /** Reads nothing from now on, until the returned function is called. */
  hold(): () => void
  /** Resolves when the server has ended it. */
  readonly ended: Promise<void>
  /** Closes the connection. */
  close(): void
}

type Asked = {
  readonly method?: Dispatcher.HttpMethod
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  /** Gets what comes, as it comes. */
  readonly onText?: (text: string) => void
  readonly onEvent?: (event: Omit<StreamEvent, 'id'>) => void
}

export async function openStream(
  url: string,
  { method = 'POST', headers = {}, body, onText, onEvent }: Asked,
): Promise<EventStream> {
  const leaving = new AbortController()
  const answer = await request(url, {
    method,
    headers: {
      accept: 'text/event-stream',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: leaving.signal,
    bodyTimeout: 0,
  })
  const seen: StreamEvent[] = []
  let [taken, lastId, isOver] = [0, undefined as string | undefined, false]
  let arrived = Promise.withResolvers<void>()
  let held: Promise<void> | undefined
  const notice = (): void => {
    arrived.resolve()
    arrived = Promise.withResolvers()
  }
  const read = async (): Promise<void> => {
    let text = ''
    for await (const chunk of answer.body.setEncoding('utf8')) {
      text += chunk
      onText?.(chunk)
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const { id, ...event } = blockOf(text.slice(0, end))
        text = text.slice(end + 2)
        lastId = id ?? lastId
        if (event.name === undefined) continue
        seen.push({ name: event.name, data: event.data, id })
        onEvent?.({ name: event.name, data: event.data })
      }
      notice()
      await held
    }
  }
  const ended = read()
    .catch(() => {})
    .then(() => {
      isOver = true
      notice()
    })
  return {
    status: answer.statusCode,
    headers: answer.headers,
    seen,
    lastId: () => lastId,
    async next(name) {
      for (;;) {
        for (; taken < seen.length; taken++) {
          const event = seen[taken] ?? assert.fail()
          if (name !== undefined && event.name !== name) continue
          taken++
          return event
        }
        assert.ok(
          !isOver,
          `the stream has ended before ${name ?? 'another event'}: ${JSON.stringify(seen.at(-1))}`,
        )
        await arrived.promise
      }
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return resolve
    },
    ended,
    close: () => leaving.abort(),
  }
}

/** HTML, section 9.2.6. */
function blockOf(block: string): { name?: string; data?: unknown; id?: string } {
  const values = new Map<string, string[]>()
  for (const line of block.split('\n')) {
    const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
    values.set(field, [...(values.get(field) ?? []), value])
  }
  const [data, id] = [values.get('data'), values.get('id')?.at(-1)]
  return {
    ...(id !== undefined && { id }),
    ...(data !== undefined && {
      name: values.get('event')?.at(-1) ?? 'message',
      data: JSON.parse(data.join('\n')),
    }),
  }
}

type Row = { readonly id: number } & Readonly<Record<string, unknown>>

/** The rows of a page that applies the events of one table, by their keys. */
export function pageOf({ seen }: Pick<EventStream, 'seen'>, table: string): ReadonlyMap<string, Row> {
  const rows = new Map<string, Row>()
  let isFresh = true
  for (const { name, data } of seen) {
    if (name === 'reset') isFresh = true
    if (data.table !== table) continue
    if (name === 'snapshot') {
      if (isFresh) rows.clear()
      isFresh = false
      for (const row of data.rows) rows.set(JSON.stringify({ id: row.id }), row)
    }
    if (name === 'change') rows.set(JSON.stringify(data.key), data.row)
    if (name === 'leave') rows.delete(JSON.stringify(data.key))
  }
  return rows
}
