import { failure, type GatehouseError } from '../failure.ts'
import { parseJson } from '../json.ts'
import type { Connection } from '../request.ts'
import type { StreamEvent } from './event-parser.ts'
import { type Follower, follow } from './follow.ts'
import { createLiveRows, type LiveRow } from './live-rows.ts'
import { isLasting } from './stream-failure.ts'

/** loading: there are no rows yet. stale: the rows may be others by now, since the connection is lost or late. */
export type LiveStatus = 'loading' | 'live' | 'stale'

export type LiveState<Row> = {
  readonly rows: readonly Row[]
  readonly status: LiveStatus
  readonly error: GatehouseError | undefined
}

/** Is called when the rows, their status or the error have changed, and never with a part of a snapshot. */
export type LiveListener<Row> = (state: LiveState<Row>) => void

/** A request that a stream can take. Any other member is refused. */
export type LiveRequest = {
  readonly table_name: string
  readonly schema_name?: string | undefined
  readonly columns?: readonly string[] | undefined
  readonly conditions?: unknown
}

/** The data of an event; each has some of these members. */
type Told = {
  readonly rows: readonly LiveRow[]
  readonly key: LiveRow
  readonly row?: LiveRow
  readonly reason: string
}

/** Milliseconds for which a stream that has said `behind` counts as late: the service repeats it every 15 seconds. */
const LATE = 20_000

/** Follows the rows of a request. Returns a function that ends it, as the signal does; `on` is not called from then on. */
export function openLive<Row>(
  connection: Connection,
  request: LiveRequest,
  on: LiveListener<Row>,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): () => void {
  const { table_name, schema_name, columns, conditions, ...others } = request
  const rows = createLiveRows(columns, connection.numbers)
  let list: readonly Row[] = []
  let [isLive, isLate, isTelling, hasChanged, isRestarting, isClosed] = Array<boolean>(6).fill(false)
  let error: GatehouseError | undefined
  let late: ReturnType<typeof setTimeout> | undefined
  let follower: Follower | undefined

  const status = (): LiveStatus => {
    if (isLive && !isLate) return 'live'
    return rows.list() === undefined && (error === undefined || !isLasting(error)) ? 'loading' : 'stale'
  }

  /** Once for all that has changed together. A failure of `on` is not one of the stream. */
  function tell(): void {
    if (isTelling) return
    isTelling = true
    queueMicrotask(() => {
      isTelling = false
      if (isClosed || signal?.aborted) return
      if (hasChanged) list = (rows.list() ?? []) as Row[] // as the request has asked for them
      hasChanged = false
      on({ rows: list, status: status(), error })
    })
  }

  function become(next: { readonly isLive: boolean; readonly error?: GatehouseError }): void {
    ;({ isLive, error } = { error: undefined, ...next })
    tell()
  }

  function behind(): void {
    clearTimeout(late)
    isLate = true
    late = setTimeout(() => {
      isLate = false
      tell()
    }, LATE)
    tell()
  }

  /** Events that have come already are of the former request. */
  function restart(): void {
    isRestarting = true
    follower?.restart()
  }

  function changed({ key, row }: Told): void {
    hasChanged = true
    if (rows.apply(key, row)) tell()
    else restart()
  }

  const events: Readonly<Record<string, (told: Told) => void>> = {
    snapshot: (told) => rows.add(told.rows),
    ready() {
      rows.ready()
      hasChanged = true
      become({ isLive: true })
    },
    change: changed,
    leave: changed,
    behind,
    reset({ reason }) {
      rows.begin()
      if (reason === 'table_changed' && rows.forgetKey()) restart()
      become({ isLive: false })
    },
  }

  function apply({ name, data }: StreamEvent): void {
    if (isRestarting) return
    // As the service writes events.
    events[name]?.(parseJson(data, connection.numbers) as Told)
  }

  function close(): void {
    isClosed = true
    clearTimeout(late)
    follower?.close()
  }

  tell()
  const unfit = Object.keys(others).find((name) => isGiven(others[name as keyof typeof others]))
  if (unfit !== undefined) {
    const message = `Live rows take no ${unfit === 'sort_by' ? 'order' : unfit}`
    become({ isLive: false, error: failure({ code: 'not_live', message, status: 400 }) })
    return close
  }
  follower = follow({
    connection,
    signal,
    body: () => ({ tables: [{ table_name, schema_name, columns: rows.columns(), conditions }] }),
    opened(isResumed) {
      // It says so again.
      isRestarting = isLate = false
      if (!isResumed) rows.begin()
    },
    apply: (arrived) => arrived.forEach(apply),
    broken(why) {
      // It may have no column of the former key.
      if (why.status === 400) rows.forgetKey()
      become({ isLive: false, error: why })
    },
    ended(why) {
      clearTimeout(late)
      become({ isLive: false, error: why })
    },
  })
  return close
}

/** Neither undefined nor an empty list. */
const isGiven = (value: unknown): boolean => `${value ?? ''}` !== ''
