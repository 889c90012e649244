import { fail } from '#databases/failures.ts'
import type { Column, Table } from '#databases/plan/catalogue.ts'
import type { InsertPlan, Plan } from '#databases/plan/plan.ts'
import { resolveCondition } from '#databases/plan/resolve-condition.ts'
import { comparisons } from '#databases/request/conditions.ts'
import { parseJson } from '#databases/request/json.ts'
import type { Comparison, Condition, Json, Scope } from '#databases/request/request.ts'

/** The table with the columns of the scope. Names of a request are looked up only here, so that no other column can be mentioned. */
export function seenThrough({ columns }: Scope, table: Table): Table {
  if (columns === undefined) return table
  const names = new Set(columns)
  return { ...table, columns: new Map([...table.columns].filter(([name]) => names.has(name))) }
}

/** The plan with the conditions of the scope, whose names are looked up in the whole table. */
export function inScope(plan: Plan, table: Table, { where }: Scope): Plan {
  if (where === undefined) return { ...plan, table }
  if ('where' in plan) for (const comparison of comparisons(plan.where)) requireTextPattern(comparison)
  const fixed = resolveCondition(table, where)
  if (plan.kind === 'insert') return { ...withFixedValues(plan, fixed), table, check: fixed }
  const both: Condition<Column> =
    plan.where === undefined ? fixed : { kind: 'all', terms: [fixed, plan.where], isGuarded: true }
  return plan.kind === 'update'
    ? { ...plan, table, where: both, check: fixed }
    : { ...plan, table, where: both }
}

/**
 * The escape character at the end of a pattern (request/scope.ts) is found in patterns for texts. For `bytea` it can be written as a number.
 */
function requireTextPattern({ operator, column }: Comparison<Column>): void {
  if ((operator === 'like' || operator === 'ilike') && column.category !== 'S')
    throw fail('invalid_condition', { hint: `${operator} takes a column of text here.` })
}

/** Omitted columns of fixed equality conditions take their value. */
function withFixedValues(plan: InsertPlan, fixed: Condition<Column>): InsertPlan {
  const values = equalities(fixed).filter(({ column }) => column.writable)
  if (values.length === 0) return plan
  const defaults = Object.fromEntries(values.map(({ column, value }) => [column.name, value]))
  const columns = new Map(
    [...plan.columns, ...values.map(({ column }) => column)].map((one) => [one.name, one]),
  )
  return {
    ...plan,
    columns: [...columns.values()],
    rows: plan.rows.map((row) => ({ ...defaults, ...row })),
  }
}

type Equality = { readonly column: Column; readonly value: Json }

function equalities(condition: Condition<Column>): readonly Equality[] {
  if (condition.kind === 'all') return condition.terms.flatMap(equalities)
  if (condition.kind !== 'compare' || condition.operator !== 'eq') return []
  const { column, value, columnCast, valueCast } = condition
  if (columnCast !== undefined || valueCast !== undefined) return []
  return [{ column, value: writtenValue(column, value) }]
}

/** In a condition, the text for a JSON column is JSON; in a row it is a JSON string. */
function writtenValue({ base }: Column, value: Json): Json {
  if (typeof value !== 'string' || (base !== 'json' && base !== 'jsonb')) return value
  try {
    return parseJson(value)
  } catch {
    // The database refuses the condition.
    return value
  }
}
