import { type LiveListener, openLive } from '../live/open-live.ts'
import { type Bounds, type Connection, post, type Reply } from '../request.ts'
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
  post(connection, { path: '/gateway/fetch', body, isRepeatable: true, ...bounds })

/** Rows that are read when this is awaited, again each time; those of a function once. Its methods leave it as it is and return another one. */
export function read(connection: Connection, fetch: Fetch, state: ReadState) {
  const { body, mode, bounds } = state
  const next = (change: Partial<ReadState>): object => read(connection, fetch, { ...state, ...change })
  const ask = (change: Partial<ReadBody>) => next({ body: { ...body, ...change } })
  // One row more than is wanted shows that there are several.
  const sent = mode === 'many' ? body : { ...body, limit: Math.min(2, body.limit ?? 2) }
  const run = async () => found(await fetch(connection, sent, bounds), mode)
  return {
    ...awaitable(fetch === fetchTable ? run : once(run)),
    ...conditionMethods((...conditions) => ask({ conditions: [...body.conditions, ...conditions] })),
    request: body,
    select: (selection: unknown) => ask({ columns: columnsOf(selection) }),
    order: (by: unknown, options?: OrderOptions) =>
      ask({ sort_by: [...body.sort_by, ...sortOf(by, options)] }),
    limit: (limit: number) => ask({ limit }),
    range: (from: number, to: number) => ask({ offset: from, limit: to - from + 1 }),
    page: (page: number, size: number) => ask({ offset: (page - 1) * size, limit: size }),
    count: (count: CountMode = 'exact') => ask({ count }),
    single: () => next({ mode: 'one' }),
    maybeSingle: () => next({ mode: 'maybe' }),
    value: () => next({ mode: 'value' }),
    signal: (signal: AbortSignal) => next({ bounds: { ...bounds, signal } }),
    timeout: (timeout: number) => next({ bounds: { ...bounds, timeout } }),
    // A function may write, so its rows are not read again by themselves.
    ...(fetch === fetchTable && {
      [STEP]: oneStep('fetch', body, mode),
      [SOURCE]: { connection, body, form: mode },
      all: (options?: { readonly batch?: number }) =>
        allRows(body, options, async (page) => (await fetch(connection, page, bounds)).data),
      live: (on: LiveListener<unknown>) => openLive(connection, body, on, bounds),
    }),
  }
}
