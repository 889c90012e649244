import type { Batch, ChangeFeed, RowValues, TableChange } from '#databases/drivers/changes.ts'
import type { TableName } from '#databases/request/request.ts'
import { withTimeout } from '#kernel/timeout.ts'

export type KeyChanges = Extract<TableChange, { readonly keys: unknown }>
/** Values of the columns by which owners choose their rows, in the changed rows. */
export type Owners = ReadonlyMap<TableChange, RowValues>

/** Keys whose owners one statement reads. */
const OWNED = 500
/** Milliseconds. The table may be locked, and the changes of all others wait. */
const PATIENCE = 3_000

/** `columnsOf`: those columns, of a table where cohorts are chosen by them. */
export async function ownersIn(
  feed: Pick<ChangeFeed, 'values'>,
  { tables }: Pick<Batch, 'tables'>,
  columnsOf: (table: TableName) => readonly string[] | undefined,
): Promise<Owners> {
  const owners = new Map<TableChange, RowValues>()
  for (const change of tables) {
    if (!('keys' in change)) continue
    const columns = columnsOf(change.table)
    if (columns === undefined) continue
    // Without them each cohort reads for itself.
    const reading = withTimeout(ownersOf(feed, change, columns), PATIENCE, () => undefined)
    const values = await reading.catch(() => undefined)
    if (values !== undefined) owners.set(change, values)
  }
  return owners
}

async function ownersOf(
  feed: Pick<ChangeFeed, 'values'>,
  { table, keys }: KeyChanges,
  columns: readonly string[],
): Promise<RowValues | undefined> {
  const all = new Map<string, readonly (string | null)[]>()
  for (let from = 0; from < keys.length; from += OWNED) {
    const some = keys.slice(from, from + OWNED).map(({ key }) => key)
    const found = await feed.values(table, some, columns)
    if (found === undefined) return undefined
    for (const [key, values] of found) all.set(key, values)
  }
  return all
}
