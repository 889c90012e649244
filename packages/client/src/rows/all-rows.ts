import type { Condition, ReadBody, Sort } from './body.ts'
import { hiddenName, quoted } from './columns.ts'

type Row = Record<string, unknown>

/**
 * All rows in batches. Each begins behind the last row of the one before, by its values and not by an offset, so rows that come and go meanwhile
 * move no others. That needs an order in which no two rows are equal.
 */
export async function* allRows(
  body: ReadBody,
  { batch = 1_000 }: { readonly batch?: number } = {},
  fetch: (body: ReadBody) => Promise<unknown>,
): AsyncGenerator<Row, void, undefined> {
  const { sort_by, columns, limit, offset } = body
  if (sort_by.length === 0) throw unordered()
  if (limit !== undefined || offset !== undefined)
    throw new TypeError('all() takes no limit, page and single()')
  if (!(batch >= 1)) throw new TypeError('batch is 1 or more')
  // As texts, because a number may lose digits that tell rows apart.
  const keys = sort_by.map(({ field }, index) => `${hiddenName(index)}:${quoted(field)}::text`)
  const asked = { ...body, columns: [...(columns.length === 0 ? ['*'] : columns), ...keys], limit: batch + 1 }
  let last: readonly unknown[] = []
  for (let after: readonly Condition[] | undefined = []; after !== undefined; ) {
    const rows = (await fetch({ ...asked, conditions: [...body.conditions, ...after] })) as Row[] // of a fetch
    for (const [index, row] of rows.entries()) {
      const key = sort_by.map((_, at) => row[hiddenName(at)])
      if (last.length > 0 && key.every((value, at) => value === last[at])) throw unordered()
      // The row that shows that there are more.
      if (index === batch) break
      last = key
      for (const at of key.keys()) delete row[hiddenName(at)]
      yield row
    }
    after = rows.length > batch ? behind(sort_by, last) : undefined
  }
}

const unordered = () => new TypeError('all() needs an order in which no two rows are equal')

/** The rows behind one with these values in the order: for each column, equal before it and further in it. Undefined if there are none. */
function behind(order: readonly Sort[], values: readonly unknown[]): readonly Condition[] | undefined {
  const alternatives = order.flatMap((sort, index) => {
    const further = beyond(sort, values[index])
    const equal = order.slice(0, index).map(({ field }, at) => is(field, values[at]))
    return further === undefined ? [] : [{ and: [...equal, further] }]
  })
  return alternatives.length === 0 ? undefined : [{ or: alternatives }]
}

/** Null as well. */
const is = (column: string, value: unknown): Condition => ({ column, operator: 'eq', value })

/** Undefined if nothing comes behind the value in this column alone. */
function beyond({ field, direction, nulls }: Sort, value: unknown): Condition | undefined {
  const isDescending = direction === 'desc'
  const nullsFirst = (nulls ?? (isDescending ? 'first' : 'last')) === 'first'
  const isNull = is(field, null)
  if (value === null) return nullsFirst ? { not: [isNull] } : undefined
  const further: Condition = { column: field, operator: isDescending ? 'lt' : 'gt', value }
  return nullsFirst ? further : { or: [further, isNull] }
}
