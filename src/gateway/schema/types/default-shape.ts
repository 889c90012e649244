import type { Catalogue, Column, Table } from '#databases/plan/catalogue.ts'
import { isView, sortedTables } from '../schema.ts'
import { member } from './text.ts'
import { elementType, type Numbers, scalarType } from './value-types.ts'

/** Rows, and what inserts and updates take, of all tables. Columns keep their order. */
export function defaultShape(catalogue: Catalogue, numbers: Numbers): string {
  const schemas = Map.groupBy(sortedTables(catalogue), ({ schema }) => schema)
  const members = [...schemas].map(([schema, tables]) => schemaText(schema, tables, numbers))
  return `${headOf(numbers)}export type Database = {\n${members.join('')}}\n`
}

const headOf = (numbers: Numbers): string =>
  `export type Json = string | number | ${numbers === 'exact' ? 'bigint | ' : ''}boolean | null | Json[] | { [key: string]: Json }

`

function schemaText(schema: string, tables: readonly Table[], numbers: Numbers): string {
  return `  ${member(schema)}: {\n${tables.map((table) => tableText(table, numbers)).join('')}  }\n`
}

function tableText(table: Table, numbers: Numbers): string {
  const columns = [...table.columns.values()]
  const typeOf = (column: Column) => `${valueType(column, numbers)}${column.nullable ? ' | null' : ''}`
  const row = columns.map((column) => `${member(column.name)}: ${typeOf(column)}`)
  const parts = [`      row: ${objectText(row)}\n`]
  if (!isView(table)) {
    const written = columns.filter(({ writable }) => writable)
    parts.push(
      `      insert: ${objectText(written.map((column) => `${insertName(column)}: ${typeOf(column)}`))}\n`,
    )
    parts.push(
      `      update: ${objectText(written.map((column) => `${member(column.name)}?: ${typeOf(column)}`))}\n`,
    )
  }
  return `    ${member(table.name)}: {\n${parts.join('')}    }\n`
}

const objectText = (members: readonly string[]): string =>
  members.length === 0 ? '{}' : `{\n${members.map((text) => `        ${text}\n`).join('')}      }`

const insertName = ({ name, nullable, fallback }: Column): string =>
  `${member(name)}${nullable || fallback !== undefined ? '?' : ''}`

function valueType({ base, category }: Column, numbers: Numbers): string {
  if (category !== 'A') return category === 'C' ? 'Json' : scalarType(base, numbers)
  const element = elementType(base, numbers)
  // Elements may be null.
  return element === undefined ? 'Json[]' : `(${element} | null)[]`
}
