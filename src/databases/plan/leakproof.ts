import type { Column } from '#databases/plan/catalogue.ts'
import type { Plan } from '#databases/plan/plan.ts'
import { comparisons } from '#databases/request/conditions.ts'
import type { Comparison, Condition, Operator } from '#databases/request/request.ts'

/**
 * Whether the condition can be evaluated on any row without telling about it: all functions that it calls are leakproof in PostgreSQL 15
 * and later (`pg_proc.proleakproof`), so it does not fail on any value.
 */
export const isLeakproof = (condition: Condition<Column>): boolean =>
  comparisons(condition).every(isLeakproofComparison)

function isLeakproofComparison(comparison: Comparison<Column>): boolean {
  const { column, operator, value, columnCast, valueCast } = comparison
  if (columnCast !== undefined || valueCast !== undefined) return false
  if (operator === 'is' || (value === null && (operator === 'eq' || operator === 'neq'))) return true
  return COMPARES.has(operator) && TYPES.has(column.cast)
}

const COMPARES: ReadonlySet<Operator> = new Set(['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'in'])

/** `Column.cast` of types whose comparisons are leakproof. Those of numeric, enums, domains and everything composed are not. */
const TYPES: ReadonlySet<string> = new Set(
  [
    'bool', 'int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'text', 'varchar', 'bpchar', 'name', 'bytea',
    'uuid', 'date', 'time', 'timestamp', 'timestamptz', 'interval', 'inet', 'macaddr',
  ].map((name) => `pg_catalog.${name}`),
) // biome-ignore format: a list

/**
 * The comparison of a body that a value of some row could make fail, as far as its type tells. For drivers that have no barrier; patterns are
 * checked before (request/scope.ts).
 */
export function fallible(plan: Plan): Comparison<Column> | undefined {
  const where = 'where' in plan ? plan.where : undefined
  if (where?.kind !== 'all' || !where.isGuarded) return undefined
  return where.terms.slice(1).flatMap(comparisons).find(mayFail)
}

function mayFail({ column: { base, category }, operator }: Comparison<Column>): boolean {
  if (operator === 'is' || category === 'E') return false
  return operator === 'fts' || !UNFAILING.has(category === 'A' ? base.slice(1) : base)
}

const UNFAILING: ReadonlySet<string> = new Set([
  ...[...TYPES].map((name) => name.slice('pg_catalog.'.length)),
  'numeric',
  'jsonb',
  'citext',
  'timetz',
  'cidr',
])
