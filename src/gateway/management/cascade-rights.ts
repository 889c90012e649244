import type { Dependent } from '#databases/drivers/management.ts'
import type { TableRight } from '#databases/plan/rights.ts'
import { nameOfRight } from '#kernel/rights.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { type FixedRight, hasRight, lacking, rightsOf } from '../caller/caller-rights.ts'

/** With `cascade`, the rights to drop or change everything else that goes (gateway.md 10). */
export function requireCascadeRights(caller: GatewayCaller, dropped: readonly Dependent[]): void {
  const lacks = [
    ...dropped.flatMap(({ type }) => FIXED.get(type) ?? OTHERS).filter((right) => !hasRight(caller, right)),
    ...dropped
      .flatMap(changedTable)
      .filter((right) => !rightsOf(caller).may(right))
      .map((right) => shownName(caller, right)),
  ]
  if (lacks.length > 0) throw lacking(caller.grant, [...new Set(lacks)])
}

/** By the type, as `pg_identify_object` names it. */
const FIXED: ReadonlyMap<string, readonly FixedRight[]> = new Map<string, readonly FixedRight[]>([
  ['table', ['management.tables.drop']],
  ['foreign table', ['management.tables.drop']],
  ['view', ['management.tables.drop']],
  ['materialized view', ['management.tables.drop']],
  ['sequence', ['management.tables.drop']],
  ['table column', ['management.columns.drop']],
  ['index', ['management.indexes.drop']],
  ['function', ['management.functions.drop']],
  ['procedure', ['management.functions.drop']],
  ['aggregate', ['management.functions.drop']],
  ['table constraint', ['management.tables.write']],
  ['default value', ['management.tables.write']],
])

/** Policies, triggers, rules, types and so on decide about rows, or run code. */
const OTHERS: readonly FixedRight[] = ['management.tables.write', 'management.functions.write']

/** A table that loses a constraint or a default changes, as by an edit. */
const changedTable = ({ type, schema_name: schema, table_name: table }: Dependent): readonly TableRight[] =>
  (type === 'table constraint' || type === 'default value') && schema !== null && table !== null
    ? [
        { schema, table, action: 'read' },
        { schema, table, action: 'write' },
      ]
    : []

/** A table is named only to a key that may know of it. */
const shownName = (caller: GatewayCaller, right: TableRight): string =>
  hasRight(caller, 'management.read') || rightsOf(caller).may({ ...right, action: 'read' })
    ? nameOfRight(right)
    : `gateway.${right.action}`
