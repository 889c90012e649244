import type { RowsResult } from '#databases/drivers/driver.ts'
import { eachRow } from '#databases/drivers/json-rows.ts'
import { answerTooLarge } from '#databases/drivers/result-limits.ts'
import type { Body } from '#databases/request/fields.ts'
import type { ReadRequest } from '#databases/request/request.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { startTimeSlice } from '#kernel/time-slice.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { type Prepared, prepare, prepareAgain } from '../prepare.ts'
import { createGrouper, type Group } from './grouper.ts'
import { type Grouping, hiddenColumns, readGrouping, withHidden, withoutHidden } from './grouping.ts'

/** A prepared fetch with its grouping. */
export type GroupedFetch = Prepared<'fetch'> & { readonly groups?: Groups }
type Groups = {
  readonly grouping: Grouping
  /** The request without the hidden columns. */
  readonly request: ReadRequest
  /** As of `hiddenColumns`. */
  readonly hidden: ReadonlySet<string>
}

export async function prepareFetch(kernel: Kernel, caller: GatewayCaller, body: Body): Promise<GroupedFetch> {
  const grouping = readGrouping(body, kernel.config.gateway.force_camel_case_to_snake_case)
  const fetch = await prepare(kernel, caller, body, 'fetch')
  if (grouping === undefined) return fetch
  const { request } = fetch.plan
  const hidden = hiddenColumns(fetch.plan, grouping)
  const extended = hidden.size === 0 ? fetch : await prepareAgain(fetch, withHidden(request, hidden))
  return { ...extended, groups: { grouping, request, hidden } }
}

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
    const text = withoutHidden(row, hidden)
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
