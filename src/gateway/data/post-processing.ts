import type { RowsResult } from '#databases/drivers/driver.ts'
import { eachRow, membersOf } from '#databases/drivers/json-rows.ts'
import { answerTooLarge } from '#databases/drivers/result-limits.ts'
import type { PlanOf, ReadPlan } from '#databases/plan/plan.ts'
import { type Body, snakeCased } from '#databases/request/fields.ts'
import type { ReadRequest } from '#databases/request/request.ts'
import { startTimeSlice } from '#kernel/time-slice.ts'
import { fail } from '../errors.ts'
import { createGrouper, type Group, type Grouping } from './grouping.ts'

/** What the body says of groups; undefined without `group_by` (gateway.md 5). */
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

/** A read that also brings the columns it groups by: those that the caller did not ask for are left out of its rows. */
export type GroupedRead = { readonly plan: ReadPlan; readonly hidden: ReadonlySet<string> }

type Planning = (request: ReadRequest) => Promise<PlanOf<ReadRequest>>

export async function planGrouped(
  planning: Planning,
  request: ReadRequest,
  { groupBy, column = groupBy }: Grouping,
): Promise<GroupedRead> {
  const plan = await planning(request)
  const returned = new Set(plan.output.map(({ as }) => as))
  const hidden = new Set([groupBy, column].filter((name) => !returned.has(name)))
  if (hidden.size === 0) return { plan, hidden }
  const more = [...hidden].map((name) => ({ kind: 'column', name }) as const)
  return { plan: await planning({ ...request, columns: [...request.columns, ...more] }), hidden }
}

export type Grouped = {
  readonly rows: RowsResult
  /** JSON of `post_processing`. */
  readonly postProcessing: string
}

/** Reads the rows to their end, at most so many bytes, and groups them, in turns with what else the process has to do. */
export async function group(
  result: RowsResult,
  grouping: Grouping,
  hidden: ReadonlySet<string>,
  most: number,
): Promise<Grouped> {
  const json = (await collect(result, most)).toString()
  const slice = startTimeSlice()
  const grouper = createGrouper(grouping)
  const members = new Map<string | null, string[]>()
  const shown: string[] = []
  for (const row of eachRow(json)) {
    const text = without(row, hidden)
    const label = grouper.add(row, text)
    const rows = members.get(label)
    if (rows === undefined) members.set(label, [text])
    else rows.push(text)
    shown.push(text)
    if (slice.isOver()) await slice.next()
  }
  const groups: string[] = []
  for (const one of grouper.groups()) {
    groups.push(groupText(one, members.get(one.label) ?? [], grouping))
    if (slice.isOver()) await slice.next()
  }
  const rows =
    hidden.size === 0 && Array.isArray(result.json) ? result.json : [Buffer.from(`[${shown.join(',')}]`)]
  return { rows: { json: rows, facts: result.facts }, postProcessing: `{"grouped":[${groups.join(',')}]}` }
}

function groupText(
  { label, ...sums }: Group,
  rows: readonly string[],
  { column, strategy }: Grouping,
): string {
  const cumulative = strategy === undefined ? '' : `"cumulative_sum":${sums.cumulativeSum},`
  const aggregation =
    column === undefined
      ? ''
      : `,"aggregation":{"column":${JSON.stringify(column)},"strategy":${JSON.stringify(strategy ?? null)},` +
        `"sum":${sums.sum},${cumulative}"count":${sums.count}}`
  return `{"label":${JSON.stringify(label)},"rows":[${rows.join(',')}]${aggregation}}`
}

function without(row: string, hidden: ReadonlySet<string>): string {
  if (hidden.size === 0) return row
  const shown = [...membersOf(row)].filter(([name]) => !hidden.has(name))
  return `{${shown.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
}

/** All of an answer, if that is not more than so many bytes; the connection is free again either way. */
export async function collect({ json }: RowsResult, most: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of json) {
    size += chunk.length
    if (size > most) throw answerTooLarge(most)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
