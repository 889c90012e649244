import type { Column, Table } from '#databases/catalogue.ts'
import { comparisons } from '#databases/conditions.ts'
import type { CountPlan, DataRequest, Output, Plan, ReadPlan } from '#databases/plan.ts'

export type Touch = {
  readonly schema: string
  readonly table: string
  readonly action: 'read' | 'write' | 'delete'
  /**
   * `target`: what the operation does. `relation`: a table asked for in columns or in a returning list.
   * `returning`: rows that a write gives back and that its caller did not write whole (update, delete, an upsert with update_body,
   * and their conditions): a key that may write but not read would otherwise read a table with an update that changes nothing.
   */
  readonly because: 'target' | 'relation' | 'returning'
}

/**
 * Every table and right that a plan needs; all of them must be granted. Rows that a plain insert gives back need no right to
 * read: they are the caller's own. For a request only its own table is known; ask that before planning, so that a stranger
 * does not learn from a 404 which tables there are.
 */
export function touches(subject: DataRequest | Plan): Touch[] {
  if (!isPlan(subject)) return [target(subject, subject.table.schema, subject.table.table)]
  const { schema, name } = subject.table
  const touched: Touch[] = [target(subject, schema, name)]
  if (readsBack(subject)) touched.push({ schema, table: name, action: 'read', because: 'returning' })
  return unique([...touched, ...('output' in subject ? related(subject.output) : [])])
}

/** The table of a read, and those of its relations. */
export function tablesOf(plan: ReadPlan | CountPlan): readonly Table[] {
  const inner = (output: readonly Output[]): readonly Table[] =>
    output.flatMap((item) => (item.kind === 'column' ? [] : [item.relation.table, ...inner(item.columns)]))
  return [plan.table, ...('output' in plan ? inner(plan.output) : [])]
}

const isPlan = (subject: DataRequest | Plan): subject is Plan => 'name' in subject.table

const actions = { read: 'read', count: 'read', insert: 'write', update: 'write', delete: 'delete' } as const

const target = (subject: { readonly kind: keyof typeof actions }, schema: string, table: string): Touch => ({
  schema,
  table,
  action: actions[subject.kind],
  because: 'target',
})

function readsBack(plan: Plan): boolean {
  if (plan.kind === 'insert') return plan.conflict?.set !== undefined && !plan.head
  return (plan.kind === 'update' || plan.kind === 'delete') && !plan.head
}

function related(output: readonly Output[]): Touch[] {
  return output.flatMap((item) => {
    if (item.kind === 'column') return []
    const { schema, name } = item.relation.table
    return [{ schema, table: name, action: 'read', because: 'relation' } as const, ...related(item.columns)]
  })
}

function unique(touched: Touch[]): Touch[] {
  if (touched.length < 2) return touched
  const seen = new Map<string, Touch>()
  for (const touch of touched) {
    const key = JSON.stringify([touch.schema, touch.table, touch.action])
    if (!seen.has(key)) seen.set(key, touch)
  }
  return [...seen.values()]
}

export type Mention = { readonly schema: string; readonly table: string; readonly column: string }

/** Every column that a plan returns, writes, filters, sorts or joins by; a public route (gateway.md 13) bounds them all. */
export function mentions(plan: Plan): Mention[] {
  const of = (table: Table, columns: readonly Column[]): Mention[] =>
    columns.map((column) => ({ schema: table.schema, table: table.name, column: column.name }))
  const own = [...written(plan), ...chosen(plan)]
  const asked = 'output' in plan ? mentionedOutput(plan.table, plan.output, of) : []
  const all = [...of(plan.table, own), ...asked]
  return [...new Map(all.map((mention) => [JSON.stringify(Object.values(mention)), mention])).values()]
}

function chosen(plan: Plan): Column[] {
  const sorted = 'sort' in plan ? plan.sort.map((item) => item.column) : []
  const filtered = 'where' in plan ? comparisons(plan.where).map((comparison) => comparison.column) : []
  return [...filtered, ...sorted]
}

function written(plan: Plan): Column[] {
  if (plan.kind === 'update') return plan.set.map((assignment) => assignment.column)
  if (plan.kind !== 'insert') return []
  const conflict = plan.conflict
    ? [...plan.conflict.columns, ...(plan.conflict.set ?? []).map((item) => item.column)]
    : []
  return [...plan.columns, ...conflict]
}

function mentionedOutput(
  table: Table,
  output: readonly Output[],
  of: (table: Table, columns: readonly Column[]) => Mention[],
): Mention[] {
  return output.flatMap((item) => {
    if (item.kind === 'column') return of(table, [item.column])
    const { on, table: inner } = item.relation
    const outerKeys = of(
      table,
      on.map((pair) => pair.outer),
    )
    const innerKeys = of(
      inner,
      on.map((pair) => pair.inner),
    )
    return [...outerKeys, ...innerKeys, ...mentionedOutput(inner, item.columns, of)]
  })
}
