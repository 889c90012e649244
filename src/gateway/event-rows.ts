import type { RowsResult } from '#databases/drivers/driver.ts'
import type { Output } from '#databases/plan/plan.ts'
import type { RowsOf } from '#kernel/events/outbox.ts'
import { MAX_ROWS_BYTES } from '#kernel/events/payload.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { conditionOf } from './webhooks/filter/filter.ts'
import { type FieldOf, someRowMeets } from './webhooks/filter/row-filter.ts'

/** The rows of a plan's answer, as JSON. */
type Returned = { readonly output: readonly Output[]; readonly head: boolean; readonly stripNulls: boolean }

/**
 * The rows of an event, from the answer of the caller's own statement. `json` is undefined when the answer is longer than an event may
 * be. Such an event passes every filter, since a row that is not seen may be the one that is waited for.
 */
export function rowsOfPlan(
  kernel: Kernel,
  json: readonly Buffer[] | undefined,
  plan: Returned,
): RowsOf | undefined {
  return plan.head ? undefined : rowsOf(kernel, json, fieldsOf(plan))
}

/** Rows whose columns have no known type. */
export const rowsOfAnswer = (kernel: Kernel, json: readonly Buffer[] | undefined): RowsOf =>
  rowsOf(kernel, json, (member) => ({ member, column: undefined, isStripped: false }))

const rowsOf =
  (kernel: Kernel, chunks: readonly Buffer[] | undefined, fieldOf: FieldOf): RowsOf =>
  () => {
    const size = chunks?.reduce((sum, { length }) => sum + length, 0) ?? Number.POSITIVE_INFINITY
    if (chunks === undefined || size > MAX_ROWS_BYTES) return { json: undefined, matches: async () => true }
    const json = Buffer.concat(chunks, size).toString()
    return { json, matches: (filter) => someRowMeets(json, conditionOf(kernel, filter), fieldOf) }
  }

/** Filters name columns as the table does, whatever the caller calls them in the answer. */
const fieldsOf =
  ({ output, stripNulls }: Returned): FieldOf =>
  (name) => {
    const own = output.flatMap((member) =>
      member.kind === 'column' && member.column.name === name ? [member] : [],
    )
    const found = own.find(({ cast }) => cast === undefined) ?? own[0]
    if (found === undefined) return undefined
    const column = found.cast === undefined ? found.column : undefined
    return { member: found.as, column, isStripped: stripNulls }
  }

export type SeenRows = {
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

/** Not a generator: if that is never started, `return` does not reach the rows, which keep their connection. */
function following(head: Buffer[], rest: AsyncIterator<Buffer>): AsyncIterable<Buffer> {
  const iterator: AsyncIterator<Buffer> = {
    async next() {
      const value = head.shift()
      return value === undefined ? rest.next() : { done: false, value }
    },
    async return() {
      head.length = 0
      await rest.return?.()
      return { done: true, value: undefined }
    },
  }
  return { [Symbol.asyncIterator]: () => iterator }
}
