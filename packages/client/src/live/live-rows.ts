import { failure } from '../failure.ts'
import { isRounded, type Numbers } from '../json.ts'
import { hiddenName, quoted } from '../rows/columns.ts'

export type LiveRow = Record<string, unknown>

/** The rows that a stream shows. */
type LiveRows = {
  /** The columns to ask for. */
  columns(): readonly string[]
  /** A snapshot follows. Its rows replace the others at once, when it is whole. */
  begin(): void
  /** The table is another one. True: it has to be asked for anew, without columns of the former key. */
  forgetKey(): boolean
  add(rows: readonly LiveRow[]): void
  /** All that was sent so far is whole. */
  ready(): void
  /** Sets the row of a key, or removes it. False: a snapshot with the columns of the key is needed first. */
  apply(key: LiveRow, row?: LiveRow): boolean
  /** Undefined before the first whole snapshot. */
  list(): readonly LiveRow[] | undefined
}

/**
 * Changes tell the key of their row, snapshots do not. So the names of its columns are known from the first change, and snapshots from then on
 * have these columns under names of their own, if they were not asked for.
 */
export function createLiveRows(columns: readonly string[] = [], numbers: Numbers = 'number'): LiveRows {
  const asked = columns.length === 0 ? ['*'] : columns
  const plain = asked.flatMap((text) => (/["(]/.test(text) ? [] : text.split(',').map((name) => name.trim())))
  let names: readonly string[] = []
  let hidden: readonly string[] = []
  let [shown, arriving] = [undefined, undefined] as (readonly LiveRow[] | undefined)[]
  /** Those of `shown`, as soon as there is a change. */
  let byKey: Map<string, LiveRow> | undefined

  const isAsked = (name: string): boolean =>
    plain.includes('*') || plain.includes(name) || asked.includes(quoted(name))

  /** Equal keys have equal texts. */
  const keyOf = (row: LiveRow, columns: readonly string[]): string =>
    JSON.stringify(
      columns.map((name) => row[name]),
      (_, value) => {
        if (numbers === 'number' && isRounded(value))
          throw failure({
            code: 'inexact_key',
            message: 'A number cannot hold this primary key: use numbers: "exact"',
          })
        return typeof value === 'bigint' ? String(value) : value
      },
    )

  function indexed(rows: readonly LiveRow[]): Map<string, LiveRow> {
    const index = new Map<string, LiveRow>()
    for (const row of rows) {
      const key = keyOf(row, hidden.length > 0 ? hidden : names)
      index.set(key, without(row, hidden))
    }
    return index
  }

  const list = () => (byKey === undefined ? shown : [...byKey.values()])

  return {
    // Each hidden name stands for one of the key.
    columns: () => asked.concat(hidden.map((alias, index) => `${alias}:${quoted(names[index] as string)}`)),
    begin() {
      arriving = []
      // The key may be another one.
      if (hidden.length === 0) names = []
    },
    forgetKey() {
      const asks = hidden.length > 0
      ;[shown, byKey, names, hidden] = [list(), undefined, [], []]
      return asks
    },
    add(rows) {
      arriving = arriving === undefined ? rows : arriving.concat(rows)
    },
    ready() {
      if (arriving === undefined) return
      ;[shown, arriving] = [arriving, undefined]
      byKey = names.length > 0 ? indexed(shown) : undefined
    },
    apply(key, row) {
      const own = Object.keys(key)
      if (JSON.stringify(own) !== JSON.stringify(names)) {
        // The table may have got another key while the connection was lost.
        byKey = undefined
        names = own
        hidden = own.every(isAsked) ? [] : own.map((_, index) => hiddenName(index))
      }
      if (byKey === undefined && hidden.length > 0) return false
      byKey ??= indexed(shown ?? [])
      const text = keyOf(key, names)
      if (row === undefined) byKey.delete(text)
      else byKey.set(text, without(row, hidden))
      return true
    },
    list,
  }
}

/** The row is ours: it has just been read. */
function without(row: Record<string, unknown>, names: readonly string[]): LiveRow {
  for (const name of names) delete row[name]
  return row
}
