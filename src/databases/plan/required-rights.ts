import type { Table } from '#databases/plan/catalogue.ts'
import type { Output, Plan, WritePlan } from '#databases/plan/plan.ts'
import { type TableRight, toRead } from '#databases/plan/rights.ts'
import type { Condition, DataRequest, WriteRequest } from '#databases/request/request.ts'

type RequiredRight = TableRight & {
  /**
   * `target`: the operation itself. `relation`: a table in the requested columns. `columns`: a write that reads columns or returns rows, for which
   * PostgreSQL requires SELECT too.
   */
  readonly because: 'target' | 'relation' | 'columns'
}

/**
 * All rights that a plan needs. For a request only the right to its own table is known; require that before planning, so that a caller
 * without rights does not learn from a 404 which tables exist.
 */
export function requiredRights(subject: DataRequest | Plan): RequiredRight[] {
  if (!isPlan(subject)) return [target(subject, subject.table.schema, subject.table.table)]
  const { schema, name } = subject.table
  const required: RequiredRight[] = [target(subject, schema, name)]
  if (isWrite(subject)) {
    const returnsRows = !subject.request.head
    if (returnsRows || readsColumns(subject.request, subject.table))
      required.push({ ...toRead(subject.table), because: 'columns' })
  }
  return unique([...required, ...('output' in subject ? related(subject.output) : [])])
}

/**
 * Whether a write reads columns, apart from the rows that it returns. These do not: an insert, also one with a conflict on the primary key,
 * and an update or delete whose condition is equality on the whole primary key. The request and the names of the key suffice to decide it,
 * so that no name is looked up for a caller without the right to read.
 */
export function readsColumns(request: WriteRequest, table: Table): boolean {
  if (request.namesColumns) return true
  if (request.kind === 'insert')
    return request.conflict !== undefined && !isKey(request.conflict.columns, table)
  const { sort, limit, offset, count } = request
  if (sort.length > 0 || limit !== undefined || offset > 0 || count !== undefined) return true
  const named = request.where === undefined ? [] : equalities(request.where)
  const resource = request.kind === 'delete' && request.resource !== undefined ? [resourceOf(table)] : []
  return named === undefined || !isKey([...named, ...resource], table)
}

/** The columns of a condition that consists only of `column = value and …`. */
function equalities(where: Condition<string>): readonly string[] | undefined {
  const terms = where.kind === 'all' ? where.terms.map(equalities) : undefined
  if (terms?.every((names) => names !== undefined)) return terms.flat()
  if (where.kind !== 'compare' || where.operator !== 'eq' || where.value === null) return undefined
  return where.columnCast === undefined && where.valueCast === undefined ? [where.column] : undefined
}

function isKey(names: readonly (string | undefined)[], { primaryKey }: Table): boolean {
  const named = new Set(names)
  return (
    primaryKey.length > 0 && named.size === primaryKey.length && primaryKey.every((key) => named.has(key))
  )
}

/** `resource_id` means the column of that name, otherwise a primary key of one column (gateway.md 4). */
export function resourceOf({ columns, primaryKey }: Table): string | undefined {
  if (columns.has('resource_id')) return 'resource_id'
  return primaryKey.length === 1 ? primaryKey[0] : undefined
}

/** The table of a plan, and those of its relations. */
export function tablesOf(plan: Plan): readonly Table[] {
  const inner = (output: readonly Output[]): readonly Table[] =>
    output.filter(isRelation).flatMap(({ relation, columns }) => [relation.table, ...inner(columns)])
  return [plan.table, ...('output' in plan ? inner(plan.output) : [])]
}

const isPlan = (subject: DataRequest | Plan): subject is Plan => 'name' in subject.table

const isWrite = (plan: Plan): plan is WritePlan => plan.kind !== 'read' && plan.kind !== 'count'

const ACTIONS = { read: 'read', count: 'read', insert: 'write', update: 'write', delete: 'delete' } as const

const target = (
  subject: { readonly kind: keyof typeof ACTIONS },
  schema: string,
  table: string,
): RequiredRight => ({
  schema,
  table,
  action: ACTIONS[subject.kind],
  because: 'target',
})

function related(output: readonly Output[]): RequiredRight[] {
  return output
    .filter(isRelation)
    .flatMap(({ relation, columns }) => [
      { ...toRead(relation.table), because: 'relation' } as const,
      ...related(columns),
    ])
}

const isRelation = (item: Output): item is Extract<Output, { kind: 'relation' }> => item.kind === 'relation'

function unique(required: RequiredRight[]): RequiredRight[] {
  if (required.length < 2) return required
  const seen = new Map<string, RequiredRight>()
  for (const right of required) {
    const key = JSON.stringify([right.schema, right.table, right.action])
    if (!seen.has(key)) seen.set(key, right)
  }
  return [...seen.values()]
}
