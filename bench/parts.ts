import type { SideResult } from './results.ts'
import { median } from './statistics.ts'

/** What the value of a side is made of: the median of each part. Empty for a side without parts. */
export function partsOf({ rounds }: SideResult): ReadonlyMap<string, number> {
  const names = new Set(rounds.flatMap(({ parts }) => Object.keys(parts ?? {})))
  return new Map(
    [...names].map((name) => [name, median(rounds.flatMap(({ parts }) => parts?.[name] ?? []))] as const),
  )
}
