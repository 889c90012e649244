/** An event of a stream. */
export type StreamEvent = { readonly name: string; readonly data: string }

export type EventParser = {
  /** Takes the next bytes, and returns the events that they complete. */
  push(bytes: Uint8Array): readonly StreamEvent[]
  /** The id of the last complete event: a stream can be resumed after it. */
  lastId(): string
  /** Milliseconds after which to ask again, if the stream has said so. */
  retry(): number | undefined
}

/** Parses server-sent events (HTML, sections 9.2.5 and 9.2.6), which may be split anywhere. */
export function createEventParser(): EventParser {
  const decoder = new TextDecoder()
  let [rest, endsInReturn] = ['', false]
  let [name, data, id, lastId] = ['', [] as string[], '', '']
  let retry: number | undefined
  let complete: StreamEvent[] = []

  function take(line: string): void {
    const [, field, value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
    if (field === 'data') data.push(value)
    else if (field === 'event') name = value
    else if (field === 'id' && !value.includes('\0')) id = value
    else if (field === 'retry' && /^\d+$/.test(value)) retry = Number(value)
  }

  function dispatch(): void {
    lastId = id
    if (data.length > 0) complete.push({ name: name || 'message', data: data.join('\n') })
    ;[name, data] = ['', []]
  }

  return {
    push(bytes) {
      let text = decoder.decode(bytes, { stream: true })
      if (text === '') return []
      // A line feed that belongs to a carriage return of the bytes before.
      if (endsInReturn && text.startsWith('\n')) text = text.slice(1)
      endsInReturn = text.endsWith('\r')
      const lines = text.split(/\r\n|\r|\n/)
      lines[0] = rest + lines[0]
      rest = lines.pop() ?? ''
      complete = []
      for (const line of lines) line === '' ? dispatch() : take(line)
      return complete
    },
    lastId: () => lastId,
    retry: () => retry,
  }
}
