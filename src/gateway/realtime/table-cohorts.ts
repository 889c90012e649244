import type { Key, RowValues } from '#databases/drivers/changes.ts'
import type { Cohort, Delivery } from './cohort.ts'

/** The cohorts of one table, by the rows whose changes may concern them. */
export type TableCohorts = {
  readonly all: ReadonlySet<Cohort>
  add(cohort: Cohort): void
  remove(cohort: Cohort): void
  /** It knows all keys that it shows: where an owner chooses its rows, changes of other rows do not concern it. */
  route(cohort: Cohort): void
  /** It is reading: every change may concern it. */
  unroute(cohort: Cohort): void
  /** It has shown these. */
  told(cohort: Cohort, events: Delivery['events']): void
  /** The columns by which owners choose their rows, where several cohorts have one. */
  ownerColumns(): readonly string[] | undefined
  /**
   * Those that show the row, or may have to. `values`: those of `reads.owners` in the rows as they are now; none where there is no row; undefined
   * if they are not known.
   */
  concernedBy(key: Key, values: RowValues | undefined): Iterable<Cohort>
}

/** So a change costs no more than the cohorts that it may concern, however many follow the table. */
export function createTableCohorts(): TableCohorts {
  const [all, unrouted, owned] = [new Set<Cohort>(), new Set<Cohort>(), new Set<Cohort>()]
  const [byOwner, byKey] = [createIndex(), createIndex()]
  /** Whose keys are in the index. */
  const indexed = new Set<Cohort>()

  function* rowsOf(key: Key, values: RowValues): Iterable<Cohort> {
    yield* unrouted
    yield* byKey.get(key.json)
    for (const [column, value] of values.get(key.json)?.entries() ?? [])
      if (value !== null) yield* byOwner.get(ownerKey(column, value))
  }

  return {
    all,
    add(cohort) {
      all.add(cohort)
      unrouted.add(cohort)
      if (cohort.live.owners !== undefined) owned.add(cohort)
      for (const owner of ownersOf(cohort)) byOwner.add(owner, cohort)
    },
    remove(cohort) {
      all.delete(cohort)
      unrouted.delete(cohort)
      owned.delete(cohort)
      for (const owner of ownersOf(cohort)) byOwner.remove(owner, cohort)
      if (indexed.delete(cohort)) for (const key of cohort.shown) byKey.remove(key, cohort)
    },
    route(cohort) {
      if (!owned.has(cohort)) return
      unrouted.delete(cohort)
      if (indexed.has(cohort)) return
      indexed.add(cohort)
      for (const key of cohort.shown) byKey.add(key, cohort)
    },
    unroute(cohort) {
      if (all.has(cohort)) unrouted.add(cohort)
    },
    told(cohort, events) {
      if (!indexed.has(cohort)) return
      for (const { key, op } of events) {
        if (op === 'leave') byKey.remove(key.json, cohort)
        else byKey.add(key.json, cohort)
      }
    },
    ownerColumns() {
      const [first] = owned
      return owned.size < 2 ? undefined : first?.live.reads.owners?.map(({ column }) => column)
    },
    concernedBy: (key, values) => (values === undefined ? all : rowsOf(key, values)),
  }
}

const ownersOf = ({ live: { owners = [] } }: Cohort): readonly string[] =>
  owners.flatMap((value, column) => (value === null ? [] : [ownerKey(column, value)]))

const ownerKey = (column: number, value: string): string => `${column} ${value}`

/** Cohorts by texts. Most texts have one cohort, which needs no set. */
function createIndex() {
  const found = new Map<string, Cohort | Set<Cohort>>()
  return {
    get(text: string): Iterable<Cohort> {
      const those = found.get(text)
      if (those === undefined) return []
      return those instanceof Set ? those : [those]
    },
    add(text: string, cohort: Cohort): void {
      const before = found.get(text)
      if (before instanceof Set) before.add(cohort)
      else if (before === undefined) found.set(text, cohort)
      else if (before !== cohort) found.set(text, new Set([before, cohort]))
    },
    remove(text: string, cohort: Cohort): void {
      const before = found.get(text)
      if (before instanceof Set) before.delete(cohort)
      if (before === cohort || (before instanceof Set && before.size === 0)) found.delete(text)
    },
  }
}
