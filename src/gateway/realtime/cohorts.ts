import type { TableName } from '#databases/request/request.ts'
import { type Cohort, isQuiet } from './cohort.ts'
import { tableKey } from './live-catalogue.ts'
import type { ShownKeys } from './shown-keys.ts'
import { createTableCohorts, type TableCohorts } from './table-cohorts.ts'

/** The cohorts of a reader, by the tables whose changes concern them. */
type Cohorts = {
  all(): readonly Cohort[]
  /** Undefined where nobody follows the table. */
  of(table: TableName): TableCohorts | undefined
  /** Those whose policies read this table. */
  watching(table: TableName): readonly Cohort[]
  add(cohort: Cohort): void
  remove(cohort: Cohort): void
  /** Joins equal ones, before a batch is noted: all have read everything up to here. `batch`: the number of the last one. */
  unite(batch: number): void
}

export function createCohorts(keys: ShownKeys): Cohorts {
  const all = new Set<Cohort>()
  /** Those that have not been united yet. */
  const single = new Set<Cohort>()
  const shared = new Map<string, Cohort>()
  const byTable = new Map<string, TableCohorts>()
  const byWatched = new Map<string, Set<Cohort>>()

  function remove(cohort: Cohort): void {
    const { live } = cohort
    all.delete(cohort)
    keys.discount(cohort)
    single.delete(cohort)
    if (shared.get(live.cohort) === cohort) shared.delete(live.cohort)
    const own = byTable.get(tableKey(live.table))
    own?.remove(cohort)
    if (own?.all.size === 0) byTable.delete(tableKey(live.table))
    for (const table of live.reads.tables) {
      const set = byWatched.get(tableKey(table))
      set?.delete(cohort)
      if (set?.size === 0) byWatched.delete(tableKey(table))
    }
  }

  function join(cohort: Cohort): void {
    const equal = shared.get(cohort.live.cohort)
    // A row that one has read before the other may have left meanwhile: its key is not for those who have not been shown it.
    if (equal !== undefined && !(isQuiet(equal) && isSame(equal.shown, cohort.shown))) return
    single.delete(cohort)
    if (equal === undefined) return void shared.set(cohort.live.cohort, cohort)
    for (const member of cohort.members) {
      equal.members.add(member)
      member.moved(cohort, equal)
    }
    cohort.members.clear()
    remove(cohort)
  }

  return {
    all: () => [...all],
    of: (table) => byTable.get(tableKey(table)),
    watching: (table) => [...(byWatched.get(tableKey(table)) ?? [])],
    add(cohort) {
      const { live } = cohort
      all.add(cohort)
      keys.count(cohort)
      single.add(cohort)
      entryOf(byTable, tableKey(live.table), createTableCohorts).add(cohort)
      for (const table of live.reads.tables)
        entryOf(byWatched, tableKey(table), () => new Set<Cohort>()).add(cohort)
    },
    remove,
    unite(batch) {
      for (const cohort of single)
        if (cohort.state === 'idle' && isQuiet(cohort) && cohort.ripe <= batch) join(cohort)
    },
  }
}

const isSame = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean =>
  one.size === other.size && one.isSubsetOf(other)

function entryOf<T>(entries: Map<string, T>, key: string, create: () => T): T {
  const entry = entries.get(key) ?? create()
  entries.set(key, entry)
  return entry
}
