import { fail } from '#databases/failures.ts'
import type { Catalogue, Constraint, Table } from '#databases/plan/catalogue.ts'
import { findColumn, tableFacts, truncated } from '#databases/plan/lookup.ts'
import type { Relation } from '#databases/plan/plan.ts'
import { type Rights, toRead } from '#databases/plan/rights.ts'
import type { RelationTerm } from '#databases/request/request.ts'

type Candidate = Relation & { readonly constraint: Constraint; readonly names: readonly string[] }

/**
 * `relation(…)` names a table with a foreign key to or from this one, a foreign-key column, or a constraint; `table!constraint` chooses
 * between several. Many-to-one gives an object, one-to-many an array. A foreign key is visible only to callers who may read the table that
 * has it; for others the refusal is the same whether it exists or not.
 */
export function findRelation(
  catalogue: Catalogue,
  table: Table,
  term: RelationTerm,
  rights: Rights,
): Relation {
  const referring = inward(catalogue, table).filter(({ table: other }) => rights.may(toRead(other)))
  const candidates = [...outward(catalogue, table), ...referring]
  const fitting = candidates.filter((candidate) => fits(candidate, term))
  const [only, ...others] = fitting
  if (only === undefined) rights.require([toRead({ schema: term.schema ?? table.schema, name: term.name })])
  rights.require(fitting.map((candidate) => toRead(candidate.table)))
  if (only === undefined)
    throw fail('unknown_relation', {
      message: `Table ${table.name} has no relation ${truncated(term.name)}`,
      details: { ...tableFacts(table), relation: truncated(term.name) },
    })
  if (others.length > 0) throw ambiguous(table, term, fitting)
  return { table: only.table, many: only.many, on: only.on }
}

function fits(candidate: Candidate, term: RelationTerm): boolean {
  if (term.schema !== undefined && candidate.table.schema !== term.schema) return false
  if (term.hint !== undefined)
    return candidate.table.name === term.name && candidate.names.includes(term.hint)
  return (
    candidate.table.name === term.name ||
    (term.schema === undefined && !candidate.many && candidate.names.includes(term.name))
  )
}

const foreignKeys = (table: Table): readonly Constraint[] =>
  table.constraints.filter((constraint) => constraint.kind === 'foreign key')

function outward(catalogue: Catalogue, table: Table): Candidate[] {
  return foreignKeys(table).flatMap((constraint) => {
    const target =
      constraint.references && catalogue.find(constraint.references.schema, constraint.references.table)
    if (!target || !constraint.references) return []
    const on = pairs(table, constraint.columns, target, constraint.references.columns)
    return [{ table: target, many: false, on, constraint, names: namesOf(constraint) }]
  })
}

function inward(catalogue: Catalogue, table: Table): Candidate[] {
  return catalogue.referencing(table).map(({ from, constraint }) => {
    const on = pairs(table, constraint.references?.columns ?? [], from, constraint.columns)
    return { table: from, many: true, on, constraint, names: namesOf(constraint) }
  })
}

/** A constraint is named by its own name, and by its column when it has only one. */
const namesOf = ({ name, columns }: Constraint): string[] =>
  columns.length === 1 ? [name, ...columns] : [name]

const pairs = (outer: Table, outerNames: readonly string[], inner: Table, innerNames: readonly string[]) =>
  outerNames.map((name, index) => ({
    outer: findColumn(outer, name),
    inner: findColumn(inner, innerNames[index] ?? ''),
  }))

function ambiguous(table: Table, term: RelationTerm, candidates: readonly Candidate[]) {
  const names = candidates.map(({ table: other, constraint }) => `${other.name}!${constraint.name}`)
  const distinct = new Set(names).size === names.length
  return fail('ambiguous_relation', {
    message: `Relation ${truncated(term.name)} of ${table.name} can mean several foreign keys`,
    hint: distinct
      ? `Write one of: ${names.join(', ')}`
      : 'The foreign key refers to its own table: name its column for the row above.',
    details: { ...tableFacts(table), relation: truncated(term.name), candidates: names },
  })
}
