import { hash } from 'node:crypto'
import type { ResetReason } from '#databases/drivers/changes.ts'
import { isSame, type NotedTable, nameOf } from '#databases/drivers/postgres/changes/noted-tables.ts'
import type { TableName } from '#databases/request/request.ts'

type Version = {
  readonly oid: string
  readonly name: TableName
  readonly structure: string
  readonly policies: string
}

type Changed = { readonly table: TableName; readonly reset: ResetReason }

/**
 * Versions of the structure of noted tables, by the digest that positions have of them. So changes of the structure past the gateway are found
 * too, which fire no trigger.
 */
export function createStructures() {
  const known = new Map<string, readonly Version[]>()

  /** Returns the digest. */
  function remember(tables: readonly NotedTable[]): string {
    const versions = tables.map(({ oid, structure, policies, ...noted }) => ({
      oid,
      name: { schema: noted.schema, table: noted.table },
      structure,
      policies,
    }))
    const digest = hash('sha256', JSON.stringify(versions)).slice(0, 32)
    known.delete(digest)
    known.set(digest, versions)
    const [oldest] = known.keys()
    if (known.size > MOST && oldest !== undefined) known.delete(oldest)
    return digest
  }

  /** The tables that have changed since then; undefined where that is not known. */
  function changedSince(digest: string, tables: readonly NotedTable[]): readonly Changed[] | undefined {
    if (remember(tables) === digest) return []
    const before = known.get(digest)
    if (before === undefined) return undefined
    const isThere = (name: TableName) => tables.some((noted) => isSame(noted, name))
    const gone = before.flatMap(({ name }): Changed[] =>
      isThere(name) ? [] : [{ table: name, reset: 'table_changed' }],
    )
    return [...gone, ...tables.flatMap((noted) => changeOf(noted, before))]
  }

  return { remember, changedSince }
}

/** Digests of one process, of which only the last one or two are asked for. */
const MOST = 16

function changeOf(noted: NotedTable, before: readonly Version[]): readonly Changed[] {
  const table = nameOf(noted)
  const former = before.find(({ oid, name }) => oid === noted.oid && isSame(name, table))
  if (former === undefined || former.structure !== noted.structure) return [{ table, reset: 'table_changed' }]
  return former.policies === noted.policies ? [] : [{ table, reset: 'policy_changed' }]
}
