import { failure } from '../failure.ts'
import { toJson } from '../json.ts'
import { SOURCE, type Source } from '../rows/source.ts'
import { subjectOf } from './subject.ts'

/** A read, or a count: `db.from('orders').select({ id: true })`. */
export type Queryable<T> = {
  readonly [SOURCE]: Source
  signal(signal: AbortSignal): { orThrow(): Promise<T> }
}

/** Begins the keys of all queries. */
export const ROOT = 'gatehouse'

/** `table` is undefined if the rows are of more than one table. */
export type QueryFacts = {
  readonly url: string
  readonly subject: string
  readonly table: string | undefined
}

export type QueryOptions<T> = {
  readonly queryKey: readonly [root: typeof ROOT, facts: QueryFacts, request: string]
  readonly queryFn: (context: { readonly signal: AbortSignal }) => Promise<T>
}

/**
 * Options of TanStack Query for a read. The key names who is calling, so that users of one browser never get rows of each other. `subject` names
 * the user of a session that cannot be seen from here: a cookie, or the token of an async function.
 */
export function queryOptions<T>(
  read: Queryable<T>,
  { subject: given }: { readonly subject?: string } = {},
): QueryOptions<T> {
  const { connection, body, form } = sourceOf(read)
  const subject = subjectOf(connection, given)
  const expectSame = (): void => {
    if (subjectOf(connection, given) === subject) return
    throw failure({
      code: 'subject_changed',
      message: 'Another user has signed in since these options were made',
    })
  }
  return {
    queryKey: [
      ROOT,
      { url: connection.url, subject, table: onlyTableOf(body) },
      toJson([form, connection.numbers, body]),
    ],
    async queryFn({ signal }) {
      expectSame()
      const rows = await read.signal(signal).orThrow()
      // The session function may have given another session to the request.
      expectSame()
      return rows
    },
  }
}

export function sourceOf(read: { readonly [SOURCE]: Source }): Source {
  const source: Source | undefined = read[SOURCE]
  if (source === undefined) throw new TypeError('This takes a read of a table: functions may write')
  return source
}

export const nameOf = ({ schema_name, table_name }: Source['body']): string => `${schema_name}.${table_name}`

/** Names of relations need not be names of tables. */
const onlyTableOf = (body: Source['body']): string | undefined =>
  (body.columns ?? []).some((column) => column.replace(/"(?:[^"\\]|\\.)*"/g, '').includes('('))
    ? undefined
    : nameOf(body)
