import { membersOf } from '#databases/drivers/json-rows.ts'
import type { ReadPlan } from '#databases/plan/plan.ts'
import { type Body, snakeCased } from '#databases/request/fields.ts'
import type { ReadRequest } from '#databases/request/request.ts'
import { fail } from '../errors.ts'

/** Grouping of the rows of a request (gateway.md 5). Columns are named by the members of the rows. */
export type Grouping = {
  readonly groupBy: string
  /** If set, labels are the starts of days, hours or minutes in UTC. */
  readonly granularity: Granularity | undefined
  readonly column: string | undefined
  readonly strategy: 'cumulative_sum' | undefined
  /** Whether rows with the same JSON text count once within a group. */
  readonly dedup: boolean
}

export type Granularity = 'day' | 'hour' | 'minute'

/** Reads the grouping from a body; undefined without `group_by`. */
export function readGrouping(body: Body, snakeCase: boolean): Grouping | undefined {
  const name = (field: string): string | undefined => {
    const value = body[field] ?? undefined
    if (value !== undefined && (typeof value !== 'string' || value === '')) throw malformed(field)
    return value !== undefined && snakeCase ? snakeCased(value) : value
  }
  const word = <T extends string>(field: string, words: readonly T[]): T | undefined => {
    const value = body[field] ?? undefined
    const known = words.find((one) => one === value)
    if (known === undefined && value !== undefined) throw malformed(field)
    return known
  }
  const groupBy = name('group_by')
  const column = name('aggregation_column')
  const granularity = word('time_granularity', ['day', 'hour', 'minute'])
  const strategy = word('aggregation_strategy', ['cumulative_sum'])
  if (strategy !== undefined && column === undefined)
    throw fail('aggregation_column_required', { details: { field: 'aggregation_column' } })
  if (groupBy === undefined) return undefined
  return { groupBy, column, strategy, granularity, dedup: body.aggregation_dedup === true }
}

const malformed = (field: string) => fail('invalid_grouping', { details: { field } })

/** The columns of a grouping that the plan does not return. They are read too, and removed from the rows. */
export function hiddenColumns(
  { output }: ReadPlan,
  { groupBy, column = groupBy }: Grouping,
): ReadonlySet<string> {
  const returned = new Set(output.map(({ as }) => as))
  return new Set([groupBy, column].filter((name) => !returned.has(name)))
}

export const withHidden = (request: ReadRequest, hidden: ReadonlySet<string>): ReadRequest => ({
  ...request,
  columns: [...request.columns, ...[...hidden].map((name) => ({ kind: 'column', name }) as const)],
})

/** The text of a row without its hidden columns. */
export function withoutHidden(row: string, hidden: ReadonlySet<string>): string {
  if (hidden.size === 0) return row
  const shown = [...membersOf(row)].filter(([name]) => !hidden.has(name))
  return `{${shown.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
}

/** Memory of a grouping whose rows are not bounded. Throws when there is no room for another group, or with `dedup` for another row. */
export type GroupingMemory = {
  takeLabel(label: string | null): void
  takeDigest(): void
}

/** Characters of all labels. */
const LABELS = 16_777_216
/** Rows that differ, with aggregation_dedup: about 80 bytes each. */
const DIGESTS = 1_000_000

/** The memory of a run's groups does not depend on the number of rows, so it has limits of its own. */
export function createGroupingMemory(maxGroups: number): GroupingMemory {
  let [groups, characters, digests] = [0, 0, 0]
  return {
    takeLabel(label) {
      groups++
      characters += label?.length ?? 0
      if (groups > maxGroups) throw tooMany(`The rows have more than ${maxGroups} groups`, maxGroups)
      if (characters > LABELS)
        throw tooMany(`The labels of the groups have more than ${LABELS} characters`, LABELS)
    },
    takeDigest() {
      digests++
      if (digests > DIGESTS)
        throw tooMany(`aggregation_dedup can compare at most ${DIGESTS} different rows`, DIGESTS)
    },
  }
}

const tooMany = (message: string, maximum: number) =>
  fail('too_many_groups', {
    message,
    hint: 'Group by another column, use time_granularity, or limit the rows of the source (gateway.pipelines.max_groups).',
    details: { maximum },
  })
