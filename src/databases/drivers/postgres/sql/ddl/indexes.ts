import type { IndexDefinition, SchemaStatements } from '#databases/drivers/management.ts'
import { explainDefinition, explainDependents } from '#databases/drivers/postgres/sql/ddl/explanations.ts'
import {
  existingColumn,
  existingTable,
  newName,
  requireUnreserved,
} from '#databases/drivers/postgres/sql/ddl/names.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'
import type { Index } from '#databases/plan/catalogue.ts'

export const ALLOWED_INDEX_METHODS = ['btree', 'hash', 'gin', 'gist', 'brin', 'spgist'] as const

/** Milliseconds. Writes to the table wait meanwhile, and the request may take 60 s. */
const INDEX_TIMEOUT = 50_000

export function createIndex({ table, name, columns, unique, method }: IndexDefinition): SchemaStatements {
  const target = existingTable(table)
  requireUnreserved(table.schema, name)
  const found = ALLOWED_INDEX_METHODS.find((allowed) => allowed === method)
  if (found === undefined)
    throw fail('invalid_definition', {
      message: 'method is not known',
      details: { field: 'method', allowed: ALLOWED_INDEX_METHODS },
    })
  const list = columns.map((column) => existingColumn(table.columns, column)).join(', ')
  const kind = unique ? 'unique index' : 'index'
  return {
    statements: [`create ${kind} ${newName(name, 'index_name')} on ${target} using ${found} (${list})`],
    timeout: INDEX_TIMEOUT,
    explain: explainDefinition,
  }
}

export function dropIndex({ schema, table, name }: Index): SchemaStatements {
  requireUnreserved(schema, table)
  requireUnreserved(schema, name)
  const relation = { schema, name }
  return {
    statements: [`drop index ${quoteName(schema)}.${quoteName(name)} restrict`],
    explain: explainDependents(relation),
  }
}
