import type { Key } from '#databases/drivers/changes.ts'
import { eachMember } from '#databases/drivers/json-rows.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { ColumnTerm } from '#databases/request/request.ts'

/** A row as its reader asked for it, and its primary key, both as JSON text. Equal keys have equal texts. */
export type KeyedRow = { readonly key: string; readonly row: string }

/** The columns of the key under names of their own, to be read after those of the caller. */
export const keyTerms = (key: readonly string[]): readonly ColumnTerm[] =>
  key.map((name, index) => ({ kind: 'column', name, alias: `${ALIAS}${index}` }))

const ALIAS = 'primary key '

/** Splits the text of a row that ends with the `keyTerms`. */
export function keyedRow(text: string, key: readonly string[]): KeyedRow {
  const members = [...eachMember(text)]
  const own = members.slice(members.length - key.length)
  return {
    key: objectOf(own.map(([, value], index) => [key[index] ?? '', value])),
    row: objectOf(members.slice(0, members.length - key.length)),
  }
}

const objectOf = (members: readonly (readonly [name: string, json: string])[]): string =>
  `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`

/** The key of a row, to read the row by it. A value of a column of JSON is its text as it is. */
export const keyFrom = (json: string, columns: ReadonlyMap<string, Pick<Column, 'base'>>): Key => ({
  json,
  values: [...eachMember(json)].map(([name, value]) => {
    const isText = value.startsWith('"') && columns.get(name)?.base !== 'jsonb'
    return isText ? JSON.parse(value) : value
  }),
})
