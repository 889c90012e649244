import { boundMethods, type Connection, post, UNBOUNDED } from '../request.ts'
import type { CountMode, ReadBody, Target } from './body.ts'
import { columnsOf } from './columns.ts'
import { expectExact } from './conditions.ts'
import { countTable, type Fetch, fetchTable, read } from './read.ts'
import { awaitable, found, type Mode, once } from './result.ts'
import { newWrite } from './write.ts'

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
  const write = (kind: 'insert' | 'update' | 'delete', ...bodies: readonly object[]) =>
    newWrite(
      connection,
      kind,
      bodies.map((body) => ({ ...target, ...body })),
    )
  return {
    select: (selection: unknown = '*', options?: SelectOptions) =>
      read(connection, fetchTable, reading({ ...target, columns: columnsOf(selection), ...options })),
    insert: (rows: Rows) => write('insert', { insert_body: rows }),
    upsert: (rows: Rows, options: UpsertOptions) => write('insert', ...upserts(rows, options)),
    update: (values: Row) => write('update', { update_body: values }),
    delete: () => write('delete', {}),
    count: (count: CountMode = 'exact') =>
      read(connection, countTable, reading({ ...target, count }, 'count')),
  }
}

const reading = (body: Target & Partial<ReadBody>, mode: Mode = 'many') => ({
  body: { columns: [], conditions: [], sort_by: [], ...body },
  mode,
  bounds: UNBOUNDED,
})

/** On a conflict the service sets fixed values, so each row that is to replace another one is a statement of its own. */
function upserts(rows: Rows, { onConflict, ignoreDuplicates = false }: UpsertOptions): readonly object[] {
  const on_conflict =
    typeof onConflict === 'string' ? onConflict.split(',').map((name) => name.trim()) : onConflict
  if (ignoreDuplicates) return [{ insert_body: rows, on_conflict }]
  return [rows].flat().map((row) => {
    for (const name of on_conflict) expectExact(name, row[name])
    return { insert_body: row, on_conflict, update_body: withoutKey(row, on_conflict) }
  })
}

/** A row of nothing but its key sets the key, so that it is among the rows that are returned. */
function withoutKey(row: Row, key: readonly string[]): Row {
  const values = Object.entries(row).filter(([column, value]) => value !== undefined && !key.includes(column))
  return values.length === 0 ? row : Object.fromEntries(values)
}

/** Calls a function. It may write, so it is never called again. */
export function rpc(connection: Connection, schema: string, name: string, args: object): object {
  const call: Fetch = (connection, { columns, conditions, sort_by, limit, offset, count, head }, bounds) => {
    const output = { select: columns, filters: conditions, order: sort_by, limit, offset, count, head }
    const body = { function: name, schema, args, ...output }
    return post(connection, { path: '/gateway/rpc', body, ...bounds })
  }
  return read(connection, call, reading({ table_name: name, schema_name: schema }))
}

type Statement = { readonly query: string; readonly params: readonly unknown[] | undefined }

/** Runs SQL under a key that may. It may write, so it is never run again. */
export const sql = (connection: Connection, body: Statement, bounds = UNBOUNDED): object => ({
  ...awaitable(
    once(async () => {
      const { data, meta } = await post(connection, { path: '/gateway/query', body, ...bounds })
      return found({ data, affected_rows: meta?.rows_affected }, 'many')
    }),
  ),
  ...boundMethods(bounds, (change) => sql(connection, body, change.bounds)),
})
