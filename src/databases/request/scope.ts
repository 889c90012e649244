import { fail } from '#databases/failures.ts'
import { comparisons } from '#databases/request/conditions.ts'
import type { Comparison, DataRequest, Scope, TableName } from '#databases/request/request.ts'

/** The request within the scope. Throws a failure for everything that would widen it. */
export function within<R extends DataRequest>(request: R, scope: Scope): R {
  requireTable(request.table, scope)
  requireOwnColumns(request)
  if ('where' in request) for (const comparison of comparisons(request.where)) requirePlain(comparison)
  if (request.kind === 'insert') requireOwnConflict(request.conflict, scope)
  const isUnbounded =
    (request.kind === 'update' || (request.kind === 'delete' && request.resource === undefined)) &&
    request.where === undefined
  if (isUnbounded) throw outside('allow_unbounded', 'A write needs a condition of its own.')
  return { ...(scope.where === undefined ? request : exactlyCounted(request)), scope }
}

export const outside = (field: string, hint: string) => fail('outside_route', { hint, details: { field } })

function requireTable({ schema, table }: TableName, { table: only }: Scope): void {
  if (only !== undefined && (schema !== only.schema || table !== only.table))
    throw outside('table_name', 'This public route has a fixed table. Leave table_name out.')
}

function requireOwnColumns(request: DataRequest): void {
  if (!('columns' in request)) return
  for (const term of request.columns) {
    if (term.kind === 'relation') throw outside('columns', 'A public route has no relations.')
    if (term.kind === 'column' && term.cast !== undefined) throw NO_CASTS()
  }
}

const NO_CASTS = () => outside('columns', 'A public route has no casts.')

/**
 * An escape character at the end of a pattern is an error of the database only when it compares the pattern with a row that matches so
 * far. PostgreSQL may do that before it applies the conditions of the scope, so the error would reveal other rows.
 */
function requirePlain({ operator, value, columnCast, valueCast }: Comparison<string>): void {
  if (columnCast !== undefined || valueCast !== undefined)
    throw outside('conditions', 'A public route has no casts.')
  const isPattern = operator === 'like' || operator === 'ilike'
  if (isPattern && typeof value === 'string' && endsInEscape(value))
    throw fail('invalid_condition', { hint: 'A pattern cannot end with the escape character.' })
}

function endsInEscape(pattern: string): boolean {
  let escapes = 0
  while (pattern.at(-1 - escapes) === '\\') escapes++
  return escapes % 2 === 1
}

function requireOwnConflict(
  conflict: { readonly update: object | undefined } | undefined,
  { where, allowsUpdate }: Scope,
): void {
  if (conflict === undefined) return
  if (where !== undefined) throw outside('on_conflict', 'This public route has fixed conditions.')
  if (conflict.update !== undefined && !allowsUpdate)
    throw outside('update_body', 'This public route does not allow update.')
}

/** For callers who may not know of all rows: the planner estimates from the statistics of all. */
export function exactlyCounted<R extends DataRequest>(request: R): R {
  if (request.kind === 'count') return { ...request, mode: 'exact' }
  return 'count' in request && request.count !== undefined ? { ...request, count: 'exact' } : request
}
