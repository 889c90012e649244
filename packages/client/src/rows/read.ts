import { type LiveListener, openLive } from '../live/open-live.ts'
import { type Bounds, boundMethods, type Connection, post, type Reply, UNBOUNDED } from '../request.ts'
import { allRows } from './all-rows.ts'
import type { CountMode, ReadBody } from './body.ts'
import { columnsOf } from './columns.ts'
import { conditionMethods } from './conditions.ts'
import { type OrderOptions, sortOf } from './order.ts'
import { awaitable, found, type Mode, once } from './result.ts'
import { SOURCE } from './source.ts'
import { oneStep, STEP } from './step.ts'

type ReadState = {
  readonly body: ReadBody
  readonly mode: Mode
  readonly bounds: Bounds
}

/** How the rows of a builder are asked for: those of a table, or of a function. */
export type Fetch = (connection: Connection, body: ReadBody, bounds: Bounds) => Promise<Reply>

export const fetchTable: Fetch = (connection, body, bounds) =>
  post(connection, { path: '/gateway/fetch', body, ...bounds })

/** Counts rows without reading them. */
export const countTable: Fetch = (connection, { table_name, schema_name, conditions, count }, bounds) =>
  post(connection, {
    path: '/query/count',
    body: { table_name, schema_name, conditions, count },
    ...bounds,
  })

/** Rows that are read when this is awaited, again each time; those of a function once. Its methods leave it as it is and return another one. */
export function read(connection: Connection, fetch: Fetch, state: ReadState): object {
  const { body, mode, bounds } = state
  const next = (change: Partial<ReadState>): object => read(connection, fetch, { ...state, ...change })
  const ask = (change: Partial<ReadBody>) => next({ body: { ...body, ...change } })
  // One row more than is wanted shows that there are several.
  const sent = mode === 'many' ? body : { ...body, limit: Math.min(2, body.limit ?? 2) }
  const run = async () => found(await fetch(connection, sent, bounds), mode)
  // A function may write.
  const reads = fetch === fetchTable || fetch === countTable
  return {
    ...awaitable(reads ? run : once(run)),
    [SOURCE]: reads ? { connection, body, form: mode } : undefined,
    ...conditionMethods((...conditions) => ask({ conditions: [...body.conditions, ...conditions] })),
    request: body,
    select: (selection: unknown = '*') => ask({ columns: columnsOf(selection) }),
    order: (by: unknown, options?: OrderOptions) =>
      ask({ sort_by: [...body.sort_by, ...sortOf(by, options)] }),
    limit: (limit: number) => ask({ limit }),
    range: (from: number, to: number) => ask({ limit: to - from + 1, offset: from }),
    page: (page: number, size: number) => ask({ limit: size, offset: (page - 1) * size }),
    count: (count: CountMode = 'exact') => ask({ count }),
    single: () => next({ mode: 'one' }),
    maybeSingle: () => next({ mode: 'maybe' }),
    value: () => next({ mode: 'value' }),
    ...boundMethods(bounds, next),
    ...(fetch === fetchTable && {
      [STEP]: bounds === UNBOUNDED ? oneStep('fetch', sent, mode) : undefined,
      all: (options?: { readonly batch?: number }) =>
        allRows(sent, options, async (page) => (await fetch(connection, page, bounds)).data),
      live: (on: LiveListener<unknown>) => openLive(connection, sent, on, bounds),
    }),
  }
}
