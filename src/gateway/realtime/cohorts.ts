import type { TableName } from '#databases/request/request.ts'
import { type Cohort, isQuiet } from './cohort.ts'
import { tableKey } from './live-catalogue.ts'

/** The cohorts of a reader, by the tables whose changes concern them. */
type Cohorts = {
  all(): readonly Cohort[]
  of(table: TableName): readonly Cohort[]
  /** Those whose policies read this table. */
  watching(table: TableName): readonly Cohort[]
  add(cohort: Cohort): void
  remove(cohort: Cohort): void
  /** Joins equal ones, before a batch is noted: all have read everything up to here. `batch`: the number of the last one. */
  unite(batch: number): void
}

export function createCohorts(): Cohorts {
  const all = new Set<Cohort>()
  /** Those that have not been united yet. */
  const single = new Set<Cohort>()
  const shared = new Map<string, Cohort>()
  const [byTable, byWatched] = [createIndex(), createIndex()]

  function remove(cohort: Cohort): void {
    const { live } = cohort
    all.delete(cohort)
    single.delete(cohort)
    if (shared.get(live.cohort) === cohort) shared.delete(live.cohort)
    byTable.remove(live.table, cohort)
    for (const table of live.reads.tables) byWatched.remove(table, cohort)
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
    of: byTable.get,
    watching: byWatched.get,
    add(cohort) {
      const { live } = cohort
      all.add(cohort)
      single.add(cohort)
      byTable.add(live.table, cohort)
      for (const table of live.reads.tables) byWatched.add(table, cohort)
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

function createIndex() {
  const sets = new Map<string, Set<Cohort>>()
  return {
    get: (table: TableName): readonly Cohort[] => [...(sets.get(tableKey(table)) ?? [])],
    add: (table: TableName, cohort: Cohort): void =>
      void sets.set(tableKey(table), (sets.get(tableKey(table)) ?? new Set()).add(cohort)),
    remove(table: TableName, cohort: Cohort): void {
      const set = sets.get(tableKey(table))
      set?.delete(cohort)
      if (set?.size === 0) sets.delete(tableKey(table))
    },
  }
}
