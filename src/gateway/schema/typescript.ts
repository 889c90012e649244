import type { Catalogue, Column, Table } from '#databases/plan/catalogue.ts'
import { sortedTables } from './schema.ts'

/**
 * Generates TypeScript types for the rows of all tables. The text is deterministic and does not depend on the order of the tables. Columns
 * keep their order.
 */
export function typescriptOf(catalogue: Catalogue): string {
  const schemas = Map.groupBy(sortedTables(catalogue), ({ schema }) => schema)
  const members = [...schemas].map(([schema, tables]) => schemaText(schema, tables))
  return `${HEAD}export type Database = {\n${members.join('')}}\n`
}

const HEAD = `export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

`

function schemaText(schema: string, tables: readonly Table[]): string {
  return `  ${member(schema)}: {\n${tables.map(tableText).join('')}  }\n`
}

function tableText(table: Table): string {
  const columns = [...table.columns.values()]
  const row = columns.map((column) => `${member(column.name)}: ${typeOf(column)}`)
  const parts = [`      row: ${objectText(row)}\n`]
  if (table.kind !== 'view' && table.kind !== 'materialized view') {
    const written = columns.filter(({ writable }) => writable)
    parts.push(`      insert: ${objectText(written.map(insertMember))}\n`)
    parts.push(
      `      update: ${objectText(written.map((column) => `${member(column.name)}?: ${typeOf(column)}`))}\n`,
    )
  }
  return `    ${member(table.name)}: {\n${parts.join('')}    }\n`
}

const objectText = (members: readonly string[]): string =>
  members.length === 0 ? '{}' : `{\n${members.map((text) => `        ${text}\n`).join('')}      }`

function insertMember(column: Column): string {
  const isOptional = column.nullable || column.fallback !== undefined
  return `${member(column.name)}${isOptional ? '?' : ''}: ${typeOf(column)}`
}

const member = (name: string): string => (/^[a-z_$][\w$]*$/i.test(name) ? name : JSON.stringify(name))

const typeOf = (column: Column): string => `${valueType(column)}${column.nullable ? ' | null' : ''}`

/** Types of the JSON that rows.ts writes. NaN and infinity are written as text, which the type ignores. */
function valueType({ base, category }: Column): string {
  if (category !== 'A') return category === 'C' ? 'Json' : scalar(base)
  // Elements may be null. The name of an array type does not show whether its elements are composite.
  const element = base.slice(1)
  return TYPE_OF_BASE.has(element) || TEXT_BASES.has(element) ? `(${scalar(element)} | null)[]` : 'Json[]'
}

const scalar = (base: string): string => TYPE_OF_BASE.get(base) ?? 'string'

const TYPE_OF_BASE = new Map([
  ...['int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric'].map((name) => [name, 'number'] as const),
  ['bool', 'boolean'],
  ['json', 'Json'],
  ['jsonb', 'Json'],
])

const TEXT_BASES = new Set(
  'text varchar bpchar name uuid date time timetz timestamp timestamptz interval bytea inet cidr citext'.split(
    ' ',
  ),
)
