import type { Change, Reading } from './any-request.ts'
import { columnAt, type Row, type Sort, type Table, valueAt } from './model.ts'
import { type Choose, filterOf, inQuotes, written } from './wording.ts'

/** A deterministic chooser, seeded with a number. */
export function chooser(wording: number): Choose {
  let state = wording | 1
  return (ways) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9
    return ((state ^ (state >>> 13)) >>> 0) % ways
  }
}

/** The table as `schema.table` in one member, or in two members. */
export function targetOf({ schema, name }: Table, choose: Choose): Record<string, unknown> {
  const member = ['table_name', 'table', 'view_name'][choose(3)] ?? 'table_name'
  return choose(2) === 0
    ? { [member]: `${inPath(schema)}.${inPath(name)}` }
    : { [member]: inPath(name), schema_name: schema }
}

export const inPath = (part: string) => `"${part.replaceAll('"', '""')}"`

/** A null may be omitted. */
export function rowBody(of: Table, row: Row, choose: Choose): Record<string, unknown> {
  const entries = of.columns.flatMap(({ name, kind }, at): [string, unknown][] => {
    const value = valueAt(row, at)
    return value === null && choose(2) === 0 ? [] : [[name, written(kind, value, choose)]]
  })
  return Object.fromEntries([[of.key, row.key], ...entries])
}

export const pageBody = ({ limit, offset, size, current }: Reading['page']) => ({
  ...(limit !== undefined && { limit }),
  ...(offset !== undefined && { offset }),
  ...(size !== undefined && { page_size: size }),
  ...(current !== undefined && { current_page: current }),
})

export function sortBody(of: Table, sort: readonly Sort[], choose: Choose): Record<string, unknown> {
  const direction = (descending: boolean) =>
    (descending ? ['desc', 'descending', 'DESC'] : ['asc', 'ascending', 'Asc'])[choose(3)]
  const items = sort.map(({ column, descending, nulls }) => ({
    [choose(2) === 0 ? 'field' : 'column']: columnAt(of, column).name,
    ...(descending || choose(2) === 0 ? { direction: direction(descending) } : {}),
    ...(nulls && { nulls }),
  }))
  const member = ['sort_by', 'sortBy', 'order_by', 'orderBy'][choose(4)] ?? 'sort_by'
  return { [member]: items.length === 1 && choose(2) === 0 ? items[0] : items }
}

export function columnsBody(
  of: Table,
  output: NonNullable<Reading['output']>,
  choose: Choose,
): string | string[] {
  const columns = output.map(({ column, alias, asText }) => {
    const name = inQuotes(columnAt(of, column).name)
    const cast = isCast(of, column, asText) ? '::text' : ''
    if (alias === undefined) return `${name}${cast}`
    return choose(2) === 0 ? `${inQuotes(alias)}:${name}${cast}` : `${name}${cast} as ${inQuotes(alias)}`
  })
  return choose(2) === 0 ? columns : columns.join([',', ' , '][choose(2)])
}

/** The server prints doubles in a special format. */
export const isCast = (of: Table, column: number, asText: boolean): boolean =>
  asText && columnAt(of, column).kind !== 'double'

/** Adds the key as the last sort column, so that limit and offset are deterministic. */
export const lastByKey = (sort: readonly Sort[]): Sort[] => [...sort, { column: -1, descending: true }]

export const changeBody = (of: Table, { condition, sort, limit, offset }: Change, choose: Choose) => ({
  ...targetOf(of, choose),
  ...filterOf(of, condition, choose),
  ...sortBody(of, lastByKey(sort), choose),
  ...(limit !== undefined && { limit }),
  ...(offset > 0 && { offset }),
})
