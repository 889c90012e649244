import { type Bounds, type Connection, post } from '../request.ts'
import type { Condition, CountMode, ReadBody, Target } from './body.ts'
import { columnsOf } from './columns.ts'
import { conditionMethods } from './conditions.ts'
import { type Fetch, fetchTable, read } from './read.ts'
import { awaitable, once } from './result.ts'
import { SOURCE } from './source.ts'
import { write } from './write.ts'

type Row = Readonly<Record<string, unknown>>
type Rows = Row | readonly Row[]
export type SelectOptions = { readonly count?: CountMode; readonly head?: boolean }
type UpsertOptions = {
  /** The columns of a unique constraint. */
  readonly onConflict: string | readonly string[]
  /** Leaves rows that exist as they are. */
  readonly ignoreDuplicates?: boolean
}

/** Reads and writes of the rows of a table or view. */
export function table(connection: Connection, target: Target): object {
  const changed = (kind: 'update' | 'delete', body: object) =>
    write(connection, { kind, bodies: [{ ...target, ...body }], conditions: [], mode: 'none', bounds: {} })
  const inserted = (bodies: readonly object[]) => {
    const whole = bodies.map((body) => ({ ...target, ...body }))
    return write(connection, { kind: 'insert', bodies: whole, conditions: [], mode: 'none', bounds: {} })
  }
  return {
    select: (selection: unknown = '*', options?: SelectOptions) =>
      read(connection, fetchTable, reading({ ...target, columns: columnsOf(selection), ...options })),
    insert: (rows: Rows) => inserted([{ insert_body: rows }]),
    upsert: (rows: Rows, options: UpsertOptions) => inserted(upserts(rows, options)),
    update: (values: Row) => changed('update', { update_body: values }),
    delete: () => changed('delete', {}),
    count: (mode: CountMode = 'exact') =>
      counting(connection, { ...target, conditions: [], count: mode }, {}),
  }
}

const reading = (body: Target & Partial<ReadBody>) =>
  ({ body: { columns: [], conditions: [], sort_by: [], ...body }, mode: 'many', bounds: {} }) as const

/** On a conflict the service sets fixed values, so each row that is to replace another one is a statement of its own. */
function upserts(rows: Rows, { onConflict, ignoreDuplicates = false }: UpsertOptions): readonly object[] {
  const on_conflict =
    typeof onConflict === 'string' ? onConflict.split(',').map((name) => name.trim()) : onConflict
  if (ignoreDuplicates) return [{ insert_body: rows, on_conflict }]
  return [rows]
    .flat()
    .map((row) => ({ insert_body: row, on_conflict, update_body: withoutKey(row, on_conflict) }))
}

/** A row of nothing but its key sets the key, so that it is among the rows that are returned. */
function withoutKey(row: Row, key: readonly string[]): Row {
  const values = Object.entries(row).filter(([column, value]) => value !== undefined && !key.includes(column))
  return values.length === 0 ? row : Object.fromEntries(values)
}

type CountBody = Target & { readonly conditions: readonly Condition[]; readonly count: CountMode }

/** Counts rows without reading them. */
function counting(connection: Connection, body: CountBody, bounds: Bounds) {
  const next = (change: Bounds): object => counting(connection, body, { ...bounds, ...change })
  return {
    ...awaitable(async () => {
      const { count = 0 } = await post(connection, {
        path: '/query/count',
        body,
        isRepeatable: true,
        ...bounds,
      })
      return { data: count, count, hasMore: false }
    }),
    [SOURCE]: { connection, body, form: 'count' },
    ...conditionMethods((...more): object =>
      counting(connection, { ...body, conditions: [...body.conditions, ...more] }, bounds),
    ),
    signal: (signal: AbortSignal) => next({ signal }),
    timeout: (timeout: number) => next({ timeout }),
  }
}

/** Calls a function. It may write, so it is never called again. */
export function rpc(connection: Connection, schema: string, name: string, args: object): object {
  const call: Fetch = (connection, { columns, conditions, sort_by, limit, offset, count, head }, bounds) => {
    const order = sort_by.map(({ field, ...how }) => ({ column: field, ...how }))
    const output = { select: columns, filters: conditions, order, limit, offset, count, head }
    return post(connection, {
      path: '/gateway/rpc',
      body: { function: name, schema, args, ...output },
      isRepeatable: false,
      ...bounds,
    })
  }
  return read(connection, call, reading({ table_name: name, schema_name: schema }))
}

/** Runs SQL under a key that may. It may write, so it is never run again. */
export function sql(
  connection: Connection,
  query: string,
  params: readonly unknown[] | undefined,
  bounds: Bounds,
): object {
  const next = (change: Bounds): object => sql(connection, query, params, { ...bounds, ...change })
  return {
    ...awaitable(
      once(async () => {
        const { data, meta } = await post(connection, {
          path: '/gateway/query',
          body: { query, params },
          isRepeatable: false,
          ...bounds,
        })
        return { data, count: meta?.rows_affected ?? null, hasMore: false }
      }),
    ),
    signal: (signal: AbortSignal) => next({ signal }),
    timeout: (timeout: number) => next({ timeout }),
  }
}
