import { hash } from 'node:crypto'
import { membersOf } from '#databases/drivers/json-rows.ts'
import { fail } from '#databases/failures.ts'
import { type Decimal, decimalText, MAX_DIGITS, parseDecimal, sum, ZERO } from '#databases/request/decimal.ts'
import { startTimeSlice, type TimeSlice } from '#kernel/time-slice.ts'
import type { Granularity, Grouping, GroupingMemory } from './grouping.ts'

export type Group = {
  readonly label: string | null
  /** Exact sum as a JSON number; 0 without an aggregation column. */
  readonly sum: string
  /** Sum of this group and all groups before it. */
  readonly cumulativeSum: string
  /** Number of added values; number of rows without an aggregation column. */
  readonly count: number
}

type Grouper = {
  /** Adds a row, given as its JSON text and the part that is returned. Returns the label of its group. */
  add(row: string, returned?: string): string | null
  /** The groups, sorted ascending by code points, with the group of nulls last. Other work has its turn meanwhile. */
  groups(): AsyncGenerator<Group>
}

/** Groups rows one by one. Memory grows with the number of groups, and with `dedup` by one digest per row. */
export function createGrouper(
  { groupBy, granularity, column, dedup }: Grouping,
  memory?: GroupingMemory,
): Grouper {
  const gathered = new Map<string | null, Tally>()
  let index = 0

  function begin(label: string | null): Tally {
    memory?.takeLabel(label)
    const group = { sum: ZERO, count: 0, seen: new Set<string>() }
    // A label can be a slice of the text of many rows, and would keep all of it in memory.
    gathered.set(label === null ? null : Buffer.from(label).toString(), group)
    return group
  }

  return {
    add(row, returned = row) {
      const members = membersOf(row)
      const place = { index: index++ }
      const label = labelOf(members.get(groupBy), granularity, { ...place, column: groupBy })
      const group = gathered.get(label) ?? begin(label)
      if (dedup) {
        if (isRepeated(group, returned)) return label
        memory?.takeDigest()
      }
      const amount = column === undefined ? ZERO : amountOf(members.get(column), { ...place, column })
      if (amount === undefined) return label
      group.sum = sum(group.sum, amount)
      group.count++
      return label
    },
    async *groups() {
      const slice = startTimeSlice()
      let running = ZERO
      for (const [label, group] of await inOrder(gathered, slice)) {
        running = sum(running, group.sum)
        yield {
          label,
          sum: decimalText(group.sum),
          cumulativeSum: decimalText(running),
          count: group.count,
        }
        if (slice.isOver()) await slice.next()
      }
    },
  }
}

type Tally = { sum: Decimal; count: number; readonly seen: Set<string> }

function isRepeated({ seen }: Tally, row: string): boolean {
  const digest = hash('sha256', row, 'latin1')
  if (seen.has(digest)) return true
  seen.add(digest)
  return false
}

type Labelled<T> = readonly [label: string | null, group: T]
type Keyed<T> = { readonly entry: Labelled<T>; readonly key: Buffer }

/** Groups that are sorted at once, in about 1 ms. */
const RUN = 1_000

/**
 * The groups by label, null last. UTF-8 sorts in code point order; UTF-16, which `<` compares, does not. Sorted runs are merged, because
 * sorting 100,000 labels at once would block the process for half a second.
 */
async function inOrder<T>(
  gathered: ReadonlyMap<string | null, T>,
  slice: TimeSlice,
): Promise<readonly Labelled<T>[]> {
  const [nulls, entries] = partition([...gathered])
  let runs: (readonly Keyed<T>[])[] = []
  for (let at = 0; at < entries.length; at += RUN) {
    runs.push(
      entries
        .slice(at, at + RUN)
        .map(keyed)
        .sort(byKey),
    )
    if (slice.isOver()) await slice.next()
  }
  while (runs.length > 1) {
    const merged: (readonly Keyed<T>[])[] = []
    for (let at = 0; at < runs.length; at += 2)
      merged.push(await mergedRuns(runs[at] ?? [], runs[at + 1] ?? [], slice))
    runs = merged
  }
  return [...(runs[0] ?? []).map(({ entry }) => entry), ...nulls]
}

const partition = <T>(entries: readonly Labelled<T>[]) =>
  [entries.filter(([label]) => label === null), entries.filter(([label]) => label !== null)] as const

const keyed = <T>(entry: Labelled<T>): Keyed<T> => ({ entry, key: Buffer.from(entry[0] ?? '') })
const byKey = (left: Keyed<unknown>, right: Keyed<unknown>): number => Buffer.compare(left.key, right.key)

async function mergedRuns<T>(
  left: readonly Keyed<T>[],
  right: readonly Keyed<T>[],
  slice: TimeSlice,
): Promise<readonly Keyed<T>[]> {
  const merged: Keyed<T>[] = []
  let [l, r] = [0, 0]
  for (;;) {
    const [one, other] = [left[l], right[r]]
    const first = one && (other === undefined || byKey(one, other) <= 0) ? one : other
    if (first === undefined) return merged
    merged.push(first)
    if (first === one) l++
    else r++
    if (merged.length % RUN === 0 && slice.isOver()) await slice.next()
  }
}

/** Position of a value, for error messages. */
type Place = { readonly column: string; readonly index: number }

function labelOf(
  json: string | undefined,
  granularity: Granularity | undefined,
  place: Place,
): string | null {
  const text = textOf(json)
  if (text === null || granularity === undefined) return text
  return startOf(text, granularity) ?? refuse(text, place, 'a date or time that ISO 8601 can write')
}

function amountOf(json: string | undefined, place: Place): Decimal | undefined {
  const text = textOf(json)
  if (text === null) return undefined
  return parseDecimal(text) ?? refuse(text, place, `a number of at most ${MAX_DIGITS} digits`)
}

/** The text of a JSON value: strings without quotes, other values unchanged. */
function textOf(json: string | undefined): string | null {
  if (json === undefined || json === 'null') return null
  return json.startsWith('"') ? JSON.parse(json) : json
}

const INSTANT =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?)?$/

/** `2026-01-31T10:59:00.5+02:00` by the hour → `2026-01-31T08:00:00Z`; without an offset it is UTC. */
function startOf(text: string, granularity: Granularity): string | undefined {
  const match = INSTANT.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = match
    .slice(1, 6)
    .map((part) => Number(part ?? 0))
  const offset = Number(`${match[7] ?? '+'}1`) * (Number(match[8] ?? 0) * 60 + Number(match[9] ?? 0))
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // JavaScript accepts 31 February, which is invalid. 24:00 is the next midnight.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 24 || minute > 59)
    return undefined
  date.setUTCHours(hour, minute - offset)
  const iso = date.toISOString()
  // Years before 0000 and after 9999 have six digits and a sign.
  return iso.length === 24
    ? `${iso.slice(0, PREFIX_LENGTH[granularity])}${'0000-00-00T00:00:00'.slice(PREFIX_LENGTH[granularity])}Z`
    : undefined
}

/** Length of the prefix of `2026-01-31T10:59:00Z` that identifies the day, hour or minute. */
const PREFIX_LENGTH: Readonly<Record<Granularity, number>> = { day: 11, hour: 14, minute: 17 }

function refuse(value: string, { column, index }: Place, wanted: string): never {
  const shown = value.length > 100 ? `${value.slice(0, 100)}…` : value
  throw fail('invalid_value', {
    message: `The value ${JSON.stringify(shown)} of ${column} is not ${wanted}`,
    details: { column, value: shown, row: index },
  })
}
