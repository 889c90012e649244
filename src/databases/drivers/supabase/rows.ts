import { eachRow, membersOf, NotRows } from '#databases/drivers/json-rows.ts'
import { tooManyRelated } from '#databases/drivers/result-limits.ts'
import { type Answer, strange } from '#databases/drivers/supabase/exchange.ts'
import { fail } from '#databases/failures.ts'
import type { Output, ReadPlan, WritePlan } from '#databases/plan/plan.ts'
import { startTimeSlice } from '#kernel/time-slice.ts'

/** How rows are rewritten after PostgREST. */
type RowShape = { readonly output: readonly Output[]; readonly stripNulls: boolean }

type RowLimits = {
  readonly rows: number
  /** The most rows with those of relations (`gateway.max_rows`). */
  readonly related?: number
}

type ShapedRows = {
  readonly json: Buffer
  /** The most rows of a relation for one row. */
  readonly longest: number
}

/** The largest row that is rewritten, because rewriting one row blocks the process. */
const MAX_ROW_BYTES = 4_194_304

/**
 * The JSON of at most so many rows. It is passed on unchanged, unless members must be removed, or a to-many relation is an object:
 * PostgREST returns an object where the key is unique.
 */
export async function shaped(
  { body }: Pick<Answer, 'body'>,
  count: number,
  limits: RowLimits,
  { output, request: { stripNulls } }: ReadPlan | WritePlan,
): Promise<ShapedRows> {
  const isRewritten = stripNulls || output.some((item) => item.kind === 'relation')
  if (!isRewritten && count <= limits.rows) return { json: body, longest: 0 }
  const writer = rowWriter(isRewritten ? { output, stripNulls } : undefined, limits.related)
  const slice = startTimeSlice()
  const rows: string[] = []
  try {
    for (const row of eachRow(body.toString().trim())) {
      if (rows.length < limits.rows) rows.push(writer.write(row))
      if (slice.isOver()) await slice.next()
    }
  } catch (error) {
    throw error instanceof NotRows ? strange('with what are no rows of a relation') : error
  }
  return { json: Buffer.from(`[${rows.join(',')}]`), longest: writer.longest() }
}

/** Without a shape, rows stay unchanged. */
function rowWriter(shape: RowShape | undefined, budget = Number.POSITIVE_INFINITY) {
  let written = 0
  let longest = 0

  function rowText(row: string, { output, stripNulls }: RowShape): string {
    if (++written > budget) throw tooManyRelated(budget)
    const relations = new Map(
      output.filter((item) => item.kind === 'relation').map((item) => [item.as, item]),
    )
    const members: string[] = []
    for (const [name, value] of membersOf(row)) {
      const relation = relations.get(name)
      const text = relation === undefined ? value : relationText(value, relation, stripNulls)
      if (!(stripNulls && text === 'null')) members.push(`${JSON.stringify(name)}:${text}`)
    }
    return `{${members.join(',')}}`
  }

  function relationText(
    value: string,
    { relation, columns }: Extract<Output, { kind: 'relation' }>,
    stripNulls: boolean,
  ): string {
    const shape = { output: columns, stripNulls }
    const isOne = value.startsWith('{')
    if (!relation.many && value !== 'null' && !isOne) throw new NotRows()
    if (!relation.many) return isOne ? rowText(value, shape) : value
    const rows = value === 'null' ? [] : isOne ? [value] : [...eachRow(value)]
    longest = Math.max(longest, rows.length)
    return `[${rows.map((row) => rowText(row, shape)).join(',')}]`
  }

  return {
    write(row: string): string {
      if (shape === undefined) return row
      if (row.length > MAX_ROW_BYTES) throw tooLargeRow()
      return rowText(row, shape)
    },
    longest: () => longest,
  }
}

const tooLargeRow = () =>
  fail('result_too_large', {
    message: 'A row is larger than 4 MiB',
    hint: 'Ask for fewer columns, or read the relation by itself.',
  })
