import type { Reading } from './any-request.ts'
import { isCast } from './bodies.ts'
import { columnAt, type Row, type Table, valueAt } from './model.ts'
import { doubleText, type Kind, kinds } from './values.ts'

export const byKey = (of: Table, rows: readonly Record<string, unknown>[]) =>
  rows.toSorted((left, right) => String(left[of.key]).localeCompare(String(right[of.key])))

export const rowJson = (of: Table, row: Row) => outputJson(of, row, { output: undefined, stripNulls: false })

export function outputJson(
  of: Table,
  row: Row,
  { output = whole(of), stripNulls }: Pick<Reading, 'output' | 'stripNulls'>,
) {
  const entries = output.map(({ column, alias, asText }): [string, unknown] => {
    const { name, kind } = columnAt(of, column)
    const value = valueAt(row, column)
    const meaning: Kind = kinds[kind]
    const json =
      value === null ? null : isCast(of, column, asText) ? `'${meaning.text(value)}` : meaning.json(value)
    return [alias ?? name, json]
  })
  return Object.fromEntries(entries.filter(([, json]) => !stripNulls || json !== null))
}

export const whole = (of: Table): NonNullable<Reading['output']> =>
  [-1, ...of.columns.keys()].map((column) => ({ column, asText: false }))

/** Doubles are compared by value, because their digits may differ. */
export function plain(
  of: Table,
  data: readonly Record<string, unknown>[],
  { output = whole(of) }: Partial<Pick<Reading, 'output'>> = {},
) {
  const doubles = output.flatMap(({ column, alias }) => {
    const { name, kind } = columnAt(of, column)
    return kind === 'double' ? [alias ?? name] : []
  })
  return data.map((row) => {
    const copy = { ...row }
    for (const name of doubles) {
      const json = copy[name]
      if (typeof json === 'string' && json.startsWith('#'))
        copy[name] = `#${doubleText(Number(json.slice(1)))}`
    }
    return copy
  })
}
