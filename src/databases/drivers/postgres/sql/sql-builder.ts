import { quoteName } from '#databases/drivers/quote-name.ts'
import type { Column, Table } from '#databases/plan/catalogue.ts'

/** In the text format: a text, or its bytes in UTF-8; null is NULL. */
export type Parameter = string | Buffer | null

/** A statement that is ready to be sent. */
export type BuiltSql = {
  readonly text: string
  readonly values: readonly Parameter[]
  /** The column of each parameter. */
  readonly parameters: readonly (Column | undefined)[]
  readonly termPositions: readonly { readonly at: number; readonly column: Column }[]
  /** Names of the members of the returned rows. */
  readonly members: readonly string[]
}

/** A statement under construction. */
export type SqlBuilder = {
  text: string
  readonly values: Parameter[]
  readonly parameters: (Column | undefined)[]
  readonly termPositions: { at: number; column: Column }[]
  members: readonly string[]
  aliases: number
  /** The most rows that a relation aggregates into one. */
  relationRows: number
}

export const createSql = (text: string): SqlBuilder => ({
  text,
  values: [],
  parameters: [],
  termPositions: [],
  members: [],
  aliases: 0,
  relationRows: Number.POSITIVE_INFINITY,
})

export const tableText = (table: Table): string => `${quoteName(table.schema)}.${quoteName(table.name)}`
export const columnText = (alias: string, column: Column): string => `${alias}.${quoteName(column.name)}`

export function bind(sql: SqlBuilder, value: Parameter, column?: Column): string {
  sql.values.push(value)
  sql.parameters.push(column)
  return `$${sql.values.length}`
}
