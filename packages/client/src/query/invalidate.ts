import type { GatehouseError } from '../failure.ts'
import { follow } from '../live/follow.ts'
import type { SOURCE, Source } from '../rows/source.ts'
import { nameOf, type QueryFacts, ROOT, sourceOf } from './query-options.ts'

/** As much of TanStack's QueryClient as this needs. */
export type Invalidated = {
  invalidateQueries(filters: {
    predicate(query: { readonly queryKey: readonly unknown[] }): boolean
  }): Promise<unknown>
}

/** The client. */
type Database = { from(table: never): { select(): { readonly [SOURCE]: Source } } }

export type Invalidating = {
  readonly signal?: AbortSignal | undefined
  /** The stream is lost; it is asked for again, unless the service refuses it. */
  readonly onError?: (error: GatehouseError) => void
}

/**
 * Invalidates the queries of tables as soon as their rows change, by one stream. `tables` are names, or reads with the conditions of the rows that
 * matter, since a stream may have `gateway.max_rows` rows of a table. Returns a function that ends it.
 */
export function invalidate(
  queryClient: Invalidated,
  db: Database,
  tables: readonly (string | { readonly [SOURCE]: Source })[],
  { signal, onError = () => {} }: Invalidating = {},
): () => void {
  // A name of a table of this database.
  const sources = tables.map((table) =>
    sourceOf(typeof table === 'string' ? db.from(table as never).select() : table),
  )
  const [first] = sources
  if (first === undefined) throw new TypeError('invalidate needs a table')
  const { connection } = first
  const names = new Map(sources.map(({ body }) => [toldAs(body), nameOf(body)]))
  const changed = new Set<string>()
  let [isResumed, isBusy] = [false, false]

  /** One refetch after the other, since a new one would end the one before. */
  async function refetch(): Promise<void> {
    if (isBusy) return
    isBusy = true
    try {
      while (changed.size > 0) {
        const tables = new Set(changed)
        changed.clear()
        await queryClient.invalidateQueries({
          predicate: ({ queryKey: [root, facts] }) =>
            root === ROOT && isOf(facts as QueryFacts, connection.url, tables),
        })
      }
    } finally {
      isBusy = false
    }
  }

  function note(name: string, data: string): void {
    if (name === 'reset') isResumed = false
    if (name === 'change' || name === 'leave') changed.add(names.get(JSON.parse(data).table) ?? '')
    // Rows that were read before the stream began may be old.
    if (name === 'ready' && !isResumed) for (const table of names.values()) changed.add(table)
  }

  const { close } = follow({
    connection,
    signal,
    body: () => ({ tables: sources.map(({ body }) => followed(body)), snapshot: false }),
    opened(isContinued) {
      isResumed = isContinued
    },
    apply(events) {
      for (const { name, data } of events) note(name, data)
      void refetch()
    },
    broken: onError,
    ended: onError,
  })
  return close
}

/** The name of a table in events. */
const toldAs = (body: Source['body']): string =>
  body.schema_name === 'public' ? body.table_name : nameOf(body)

const followed = ({ table_name, schema_name, conditions }: Source['body']): object => ({
  table_name,
  schema_name,
  conditions,
})

const isOf = ({ url, table }: QueryFacts, service: string, tables: ReadonlySet<string>): boolean =>
  url === service && (table === undefined || tables.has(table))
