import type { RowsResult } from '#databases/drivers/driver.ts'
import { eachRow, membersOf } from '#databases/drivers/json-rows.ts'
import { answerTooLarge } from '#databases/drivers/result-limits.ts'
import type { ReadPlan } from '#databases/plan/plan.ts'
import { type Body, snakeCased } from '#databases/request/fields.ts'
import type { ReadRequest } from '#databases/request/request.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { startTimeSlice } from '#kernel/time-slice.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { fail } from '../errors.ts'
import { type Prepared, prepare, prepareAgain } from '../prepare.ts'
import { createGrouper, type Group, type Grouping } from './grouping.ts'

/** Reads the grouping from a body; undefined without `group_by` (gateway.md 5). */
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

/** A prepared fetch with its grouping. */
export type GroupedFetch = Prepared<'fetch'> & { readonly groups?: Groups }
type Groups = {
  readonly grouping: Grouping
  /** The request without the hidden columns. */
  readonly request: ReadRequest
  /** Columns that are read only for grouping. They are removed from the rows of the response. */
  readonly hidden: ReadonlySet<string>
}

export async function prepareFetch(kernel: Kernel, caller: GatewayCaller, body: Body): Promise<GroupedFetch> {
  const grouping = readGrouping(body, kernel.config.gateway.force_camel_case_to_snake_case)
  const fetch = await prepare(kernel, caller, body, 'fetch')
  if (grouping === undefined) return fetch
  const { request } = fetch.plan
  const hidden = hiddenColumns(fetch.plan, grouping)
  const extended = hidden.size === 0 ? fetch : await prepareAgain(fetch, withColumns(request, hidden))
  return { ...extended, groups: { grouping, request, hidden } }
}

/** The columns of a grouping that the plan does not return. */
export function hiddenColumns(
  { output }: ReadPlan,
  { groupBy, column = groupBy }: Grouping,
): ReadonlySet<string> {
  const returned = new Set(output.map(({ as }) => as))
  return new Set([groupBy, column].filter((name) => !returned.has(name)))
}

export const withColumns = (request: ReadRequest, names: ReadonlySet<string>): ReadRequest => ({
  ...request,
  columns: [...request.columns, ...[...names].map((name) => ({ kind: 'column', name }) as const)],
})

type GroupedRows = {
  readonly rows: RowsResult
  /** JSON of `post_processing`. */
  readonly postProcessing: string
}

/** Reads all rows up to a limit in bytes and groups them in slices, so that the event loop is not blocked. */
export async function group(
  result: RowsResult,
  grouping: Grouping,
  hidden: ReadonlySet<string>,
  max: number,
): Promise<GroupedRows> {
  const json = (await collect(result, max)).toString()
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
  for await (const one of grouper.groups()) {
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

/** The text of a row without some of its members. */
export function without(row: string, hidden: ReadonlySet<string>): string {
  if (hidden.size === 0) return row
  const shown = [...membersOf(row)].filter(([name]) => !hidden.has(name))
  return `{${shown.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
}

/** Buffers a response up to a limit in bytes. Releases the connection in any case. */
export async function collect({ json }: RowsResult, max: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of json) {
    size += chunk.length
    if (size > max) throw answerTooLarge(max)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
