import { mock } from 'node:test'
import pg from 'pg'

/** A statement with the values of its first execution. */
export type Seen = { readonly text: string; readonly values: readonly unknown[] }

/** Collects the statements of this process on one database, one of each text, while `on` is true. */
export function watchStatements(url: string): { on: boolean; readonly seen: ReadonlyMap<string, Seen> } {
  const seen = new Map<string, Seen>()
  const watch = { on: false, seen }
  const database = new URL(url).pathname.slice(1)
  const { query } = pg.Client.prototype
  mock.method(pg.Client.prototype, 'query', function (this: pg.Client, ...given: unknown[]) {
    const [first, second] = given
    const config = typeof first === 'string' ? { text: first, values: second } : Object(first)
    const { text, values } = config as { text?: unknown; values?: unknown } // pg's own forms of a query
    const isNew =
      typeof text === 'string' && /^\s*(select|insert|update|delete|with)\b/i.test(text) && !seen.has(text)
    if (watch.on && isNew && Reflect.get(this, 'database') === database)
      seen.set(text, { text, values: Array.isArray(values) ? values : [] })
    return Reflect.apply(query, this, given)
  })
  return watch
}

type Explained = { readonly 'QUERY PLAN': readonly [{ readonly Plan: Plan }] }

type Plan = {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Index Name'?: string
  readonly Plans?: readonly Plan[]
}

/** The tables that the statement reads from end to end, of those with many rows. */
export async function scannedTables(
  client: pg.Client,
  large: ReadonlySet<string>,
  { text, values }: Seen,
): Promise<readonly string[]> {
  // A text of several statements has several results; only scripts of schema changes are such.
  const { rows }: { rows?: readonly Explained[] } = await client.query<Explained>({
    text: `explain (format json) ${text}`,
    values: [...values],
  })
  const plan = rows?.[0]?.['QUERY PLAN'][0].Plan
  return plan === undefined ? [] : scansIn(plan, large, false)
}

function scansIn(plan: Plan, large: ReadonlySet<string>, isLimited: boolean): readonly string[] {
  const { 'Node Type': node, 'Relation Name': table = '', 'Index Cond': condition, Plans = [] } = plan
  const isSmall = IMPERSONATIONS.test(plan['Index Name'] ?? '')
  const isWhole =
    node === 'Seq Scan' ||
    (/^Index (Only )?Scan$/.test(node) && condition === undefined && !isLimited && !isSmall)
  const own = isWhole && large.has(table) ? [`${node} on ${table}`] : []
  return [...own, ...Plans.flatMap((child) => scansIn(child, large, isLimited || node === 'Limit'))]
}

/** Partial indexes that have the impersonated sessions only: they end after an hour. */
const IMPERSONATIONS = /^session_by_(impersonator|parent)$/

export async function largeTables(client: pg.Client, rows: number): Promise<ReadonlySet<string>> {
  const found = await client.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'service'::regnamespace and relkind = 'r' and reltuples >= $1`,
    [rows],
  )
  return new Set(found.rows.map(({ name }) => name))
}

/** Foreign keys without an index on the referencing columns: deleting a referenced row would read the whole table. */
export async function unindexedForeignKeys(client: pg.Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select conname as name from pg_constraint c where contype = 'f' and connamespace = 'service'::regnamespace
       and not exists (select from pg_index i where i.indrelid = c.conrelid
         and (i.indkey::int2[])[0:array_length(c.conkey, 1) - 1] @> c.conkey and c.conkey @> (i.indkey::int2[])[0:array_length(c.conkey, 1) - 1])`,
  )
  return rows.map(({ name }) => name)
}
