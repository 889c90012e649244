import type { RowsResult } from '#databases/drivers/driver.ts'
import type { ReadPlan, WritePlan } from '#databases/plan/plan.ts'
import { tablesOf } from '#databases/plan/required-rights.ts'
import { endable } from '#kernel/endable.ts'
import type { RowsOf } from '#kernel/events/outbox.ts'
import { MAX_ROWS_BYTES } from '#kernel/events/payload.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { inOwnTypes, isTextOfValue } from './own-types.ts'
import { conditionOf } from './webhooks/filter/filter.ts'
import { type FieldOf, judgeRows } from './webhooks/filter/row-filter.ts'

/** The outcome of an operation: the rows of its answer as JSON, undefined when they are more than an event may have. */
type AnsweredRows = {
  readonly json: readonly Buffer[] | undefined
  readonly affected: number
  readonly areOld?: boolean
  readonly ofOtherTables?: boolean
}

/** The rows of an event, from the answer of the caller's own statement: what is not in it, a filter cannot judge. */
export const rowsOfPlan = (kernel: Kernel, answered: AnsweredRows, plan: ReadPlan | WritePlan): RowsOf =>
  plan.request.head
    ? () => ({
        json: null,
        judge: async () => (plan.kind === 'read' || answered.affected > 0 ? 'unknown' : 'unmet'),
      })
    : rowsOf(
        kernel,
        { ...answered, areOld: plan.kind === 'delete', ofOtherTables: hasOtherTables(plan) },
        fieldsOf(plan),
        (json) => inOwnTypes(json, plan.output),
      )

const hasOtherTables = (plan: ReadPlan | WritePlan): boolean =>
  tablesOf(plan).some(({ schema, name }) => schema !== plan.table.schema || name !== plan.table.name)

/** Rows whose columns have no known type. */
export const rowsOfAnswer = (kernel: Kernel, answered: AnsweredRows): RowsOf =>
  rowsOf(kernel, answered, (member) => ({ member, column: undefined, isStripped: false }))

const rowsOf =
  (
    kernel: Kernel,
    { json: chunks, affected, ...facts }: AnsweredRows,
    fieldOf: FieldOf,
    restored: (json: string) => string = (json) => json,
  ): RowsOf =>
  () => {
    const size = chunks?.reduce((sum, { length }) => sum + length, 0) ?? Number.POSITIVE_INFINITY
    if (chunks === undefined || size > MAX_ROWS_BYTES)
      return { json: undefined, judge: async () => 'unknown' }
    const json = restored(Buffer.concat(chunks, size).toString())
    return {
      json,
      ...facts,
      judge: (filter) => judgeRows(json, conditionOf(kernel, filter), fieldOf, affected),
    }
  }

/** Filters name columns as the table does, whatever the caller calls them in the answer. A cast may change what they compare, unless it is undone. */
const fieldsOf =
  ({ output, request: { stripNulls } }: ReadPlan | WritePlan): FieldOf =>
  (name) => {
    for (const member of output)
      if (member.kind === 'column' && member.column.name === name && isAsStored(member))
        return { member: member.as, column: member.column, isStripped: stripNulls }
    return undefined
  }

const isAsStored = (member: Parameters<typeof isTextOfValue>[0]): boolean =>
  member.cast === undefined || isTextOfValue(member)

type SeenRows = {
  readonly rows: RowsResult
  /** All of the rows, if they are few enough for an event. */
  readonly json: readonly Buffer[] | undefined
}

/** Reads a stream ahead, as far as an event may have rows, if one is wanted. The rows to send contain what was read. */
export async function seeRows(
  { events }: Kernel,
  occasion: Parameters<Kernel['events']['isWanted']>[0],
  rows: RowsResult,
): Promise<SeenRows> {
  const { json, facts } = rows
  if (!(Symbol.asyncIterator in json)) return { rows, json }
  if (!(await events.isWanted(occasion))) return { rows, json: undefined }
  const rest = json[Symbol.asyncIterator]()
  const head: Buffer[] = []
  for (let size = 0; size <= MAX_ROWS_BYTES; ) {
    const next = await rest.next()
    if (next.done === true) return { rows: { json: head, facts }, json: head }
    head.push(next.value)
    size += next.value.length
  }
  return { rows: { json: following(head, rest), facts }, json: undefined }
}

function following(head: Buffer[], rest: AsyncIterator<Buffer>): AsyncIterable<Buffer> {
  const next = async (): Promise<IteratorResult<Buffer>> => {
    const value = head.shift()
    return value === undefined ? rest.next() : { done: false, value }
  }
  return endable(next, () => rest.return?.())
}
