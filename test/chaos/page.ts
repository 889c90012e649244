import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EventStream, openStream } from '#test/event-stream.ts'
import { actor } from '#test/harness.ts'
import type { TableOf } from './statements.ts'
import type { AnyRow, Subscriber } from './subscribers.ts'
import type { World } from './world.ts'

/** A page that applies the events of a stream as docs/guides/realtime.md says, and opens it again whenever it ends. */
export type Page = {
  readonly subscriber: Subscriber
  /** The rows that it shows, in the order of their keys. */
  rows(table: TableOf): readonly AnyRow[]
  /** The connection breaks. It opens another one, with the id of the last event. */
  cut(): void
  /** Takes nothing by this connection until `release`. */
  hold(): void
  release(): void
  /** A text that must not come by the connection that is open now. */
  forbid(text: string): void
  /** What was wrong with what came. */
  readonly faults: readonly string[]
  /** The last events, for a report. */
  readonly recent: readonly string[]
  readonly counts: Readonly<Record<string, number>>
  close(): Promise<void>
}

type Connection = { readonly stream: EventStream; readonly forbidden: string[] }

/** Milliseconds until it tries again. */
const AGAIN = 30
/** Characters of what came last, in which the beginning of a forbidden text may be. */
const OVERLAP = 100
const RECENT = 40

/** `first`: which of the services it asks first. */
export function openPage(world: World, subscriber: Subscriber, first: number): Page {
  const shown = createShownRows(subscriber)
  const { faults, count } = shown
  const body = { tables: subscriber.tables }
  let lastId: string | undefined
  let ticket: string | undefined
  let connection: Connection | undefined
  let release: (() => void) | undefined
  let isOpen = true

  async function follow(url: string): Promise<void> {
    await world.callers[subscriber.caller].renew?.()
    const { headers } = world.callers[subscriber.caller]
    if (subscriber.byTicket === true && ticket === undefined) {
      const issued = await actor(url, headers).post('/realtime/tickets', body)
      assert.notEqual(issued.status, 500, issued.text)
      if (issued.status !== 200) return count(`refused ${issued.status}`)
      ticket = issued.body.data.ticket as string
      lastId = undefined
    }
    const resumes: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId }
    const forbidden = [...subscriber.forbidden]
    let past = ''
    const onText = (text: string) => {
      past = past.slice(-OVERLAP) + text
      for (const word of forbidden) if (past.includes(word)) faults.push(`its bytes have ${word}`)
    }
    if (lastId === undefined) shown.begin()
    else shown.resume()
    const heard = { onText, onEvent: shown.apply }
    const opened = (path: string, more: Partial<Parameters<typeof openStream>[1]> = {}) =>
      openStream(`${url}${path}`, { headers: { ...headers, ...resumes }, ...heard, ...more })
    const stream =
      subscriber.route !== undefined
        ? await opened(`/public/${subscriber.route}/subscribe`, { body: partOf(subscriber) })
        : ticket === undefined
          ? await opened('/realtime', { body })
          : await opened(`/realtime?ticket=${ticket}`, { method: 'GET', headers: resumes })
    connection = { stream, forbidden }
    // It was closed while this one was being opened.
    if (!isOpen) stream.close()
    await stream.ended
    lastId = stream.lastId() ?? lastId
    assert.notEqual(stream.status, 500, past)
    // Another service may give no answer to it for a while.
    if (stream.status !== 200 && stream.status < 500) ticket = undefined
    count(
      stream.status !== 200
        ? `refused ${stream.status}`
        : 'last-event-id' in resumes
          ? 'came back'
          : 'opened',
    )
  }

  async function run(): Promise<void> {
    for (let turn = first; isOpen; turn++) {
      const { url = '' } = world.services[turn % world.services.length] ?? {}
      await follow(url).catch((error: unknown) => {
        if (error instanceof assert.AssertionError) faults.push(error.message)
      })
      connection = undefined
      if (isOpen) await sleep(AGAIN)
    }
  }

  const ended = run()
  return {
    subscriber,
    faults,
    recent: shown.recent,
    counts: shown.counts,
    rows: shown.rows,
    cut: () => connection?.stream.close(),
    hold() {
      release?.()
      release = connection?.stream.hold()
    },
    release: () => release?.(),
    forbid: (text) => void connection?.forbidden.push(text),
    async close() {
      isOpen = false
      release?.()
      connection?.stream.close()
      await ended
    },
  }
}

/** What the page shows. */
function createShownRows({ mayBe, tables, route }: Subscriber) {
  const shown = new Map<TableOf, Map<string, AnyRow>>()
  const faults: string[] = []
  const recent: string[] = []
  const counts: Record<string, number> = {}
  let [isFresh, hasResumed] = [true, false]

  const count = (name: string): void => {
    counts[name] = (counts[name] ?? 0) + 1
  }

  const isAsked = ({ n }: AnyRow, table: TableOf): boolean =>
    tables.every(({ table_name, conditions }) => table_name !== table || n > (conditions?.value ?? -1))
  /** Events of a public route call the table by the key of the route. */
  const tableIn = ({ table }: AnyRow): TableOf => (table === route ? (tables[0]?.table_name ?? table) : table)

  function put(table: TableOf, key: string, row: AnyRow): AnyRow | undefined {
    const rows = shown.get(table) ?? new Map<string, AnyRow>()
    shown.set(table, rows)
    const before = rows.get(key)
    if (!mayBe(row, table) || !isAsked(row, table))
      faults.push(`a row that is not for it: ${JSON.stringify(row)}`)
    if (before?.v !== undefined && BigInt(row.v) < BigInt(before.v))
      faults.push(`an older row after a newer one: ${JSON.stringify([before, row])}`)
    rows.set(key, row)
    return before
  }

  const APPLY: Readonly<Record<string, (data: AnyRow) => void>> = {
    reset() {
      isFresh = true
    },
    snapshot({ rows, ...named }) {
      if (isFresh) shown.clear()
      if (isFresh) hasResumed = false
      isFresh = false
      for (const row of rows)
        if (put(tableIn(named), keyOf(row), row) !== undefined)
          faults.push(`twice in a snapshot: ${JSON.stringify(row)}`)
    },
    change: ({ key, row, ...named }) => void put(tableIn(named), keyOf(key), row),
    leave({ key, ...named }) {
      const wasShown = shown.get(tableIn(named))?.delete(keyOf(key)) === true
      // It is not known which rows a page had that comes back.
      if (!wasShown && !hasResumed) faults.push(`a key that it was not shown leaves: ${JSON.stringify(key)}`)
    },
  }

  return {
    faults,
    recent,
    counts,
    count,
    begin() {
      isFresh = true
    },
    resume() {
      hasResumed = true
    },
    apply({ name, data }: { readonly name: string; readonly data: AnyRow }): void {
      count(name === 'reset' || name === 'end' ? `${name} ${data.reason}` : name)
      recent.push(`${name} ${JSON.stringify(data).slice(0, 150)}`)
      if (recent.length > RECENT) recent.shift()
      APPLY[name]?.(data)
    },
    rows: (table: TableOf): readonly AnyRow[] =>
      [...(shown.get(table)?.values() ?? [])].toSorted((one, other) => idOf(one) - idOf(other)),
  }
}

/** The key may have another name for a while. */
const idOf = (row: AnyRow): number => Number(row.id ?? row.nr)
const keyOf = (row: AnyRow): string => String(idOf(row))

/** What the body asks of the table of a public route. */
export const partOf = ({ tables: [table] }: Subscriber): object =>
  table?.conditions === undefined ? {} : { conditions: table.conditions }
