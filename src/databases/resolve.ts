import { castOf } from '#databases/casts.ts'
import type { Catalogue, Column, Constraint, Table } from '#databases/catalogue.ts'
import { fail } from '#databases/failures.ts'
import type {
  Assignment,
  ColumnTerm,
  Condition,
  CountPlan,
  CountRequest,
  DataRequest,
  DeletePlan,
  DeleteRequest,
  InsertPlan,
  InsertRequest,
  Json,
  Output,
  Plan,
  ReadPlan,
  ReadRequest,
  Relation,
  RelationTerm,
  Row,
  Sort,
  TableName,
  UpdatePlan,
  UpdateRequest,
} from '#databases/plan.ts'

/** Finds every name of a request in the catalogue. Pure: the same request and catalogue give the same plan. */
export function resolve(catalogue: Catalogue, request: DataRequest): Plan {
  const table = findTable(catalogue, request.table)
  switch (request.kind) {
    case 'read':
      return planRead(catalogue, table, request)
    case 'count':
      return planCount(table, request)
    case 'insert':
      return planInsert(catalogue, table, request)
    case 'update':
      return planUpdate(catalogue, table, request)
    case 'delete':
      return planDelete(catalogue, table, request)
  }
}

function planRead(catalogue: Catalogue, table: Table, request: ReadRequest): ReadPlan {
  const { kind, page, count, head, stripNulls } = request
  const where = resolveCondition(table, request.where)
  const output = resolveOutput(catalogue, table, request.columns)
  return {
    kind,
    request,
    table,
    output,
    where,
    sort: resolveSort(table, request.sort),
    page,
    count,
    head,
    stripNulls,
  }
}

const planCount = (table: Table, request: CountRequest): CountPlan => ({
  kind: 'count',
  request,
  table,
  where: resolveCondition(table, request.where),
  mode: request.mode,
})

function planInsert(catalogue: Catalogue, table: Table, request: InsertRequest): InsertPlan {
  const { kind, rows, conflict, defaultToNull, head, stripNulls } = request
  const names = new Set(rows.flatMap((row) => Object.keys(row)))
  const columns = [...names].map((name) => writable(table, name))
  const output = resolveOutput(catalogue, table, request.columns)
  const resolved = conflict && {
    columns: conflict.columns.map((name) => findColumn(table, name)),
    set: conflict.update && assign(table, conflict.update),
  }
  return { kind, request, table, columns, rows, conflict: resolved, defaultToNull, output, head, stripNulls }
}

function planUpdate(catalogue: Catalogue, table: Table, request: UpdateRequest): UpdatePlan {
  const { kind, limit, offset, count, head, stripNulls } = request
  const where = resolveCondition(table, request.where)
  const set = assign(table, request.set)
  const sort = resolveSort(table, request.sort)
  const output = resolveOutput(catalogue, table, request.columns)
  return { kind, request, table, set, where, sort, limit, offset, output, count, head, stripNulls }
}

function planDelete(catalogue: Catalogue, table: Table, request: DeleteRequest): DeletePlan {
  const { kind, limit, offset, count, head, stripNulls } = request
  const asked = resolveCondition(table, request.where)
  const resource = request.resource === undefined ? undefined : resourceIs(table, request.resource)
  const where: DeletePlan['where'] =
    asked && resource ? { kind: 'all', terms: [resource, asked] } : (resource ?? asked)
  const sort = resolveSort(table, request.sort)
  const output = resolveOutput(catalogue, table, request.columns)
  return { kind, request, table, where, sort, limit, offset, output, count, head, stripNulls }
}

/** `resource_id` means the column of that name, else the primary key if it is one column (gateway.md 4). */
function resourceIs(table: Table, value: Json): Condition<Column> {
  const [key, ...others] = table.primaryKey
  const name = table.columns.has('resource_id') ? 'resource_id' : others.length === 0 ? key : undefined
  if (name === undefined)
    throw fail('missing_resource_key', { hint: 'Name the rows by conditions.', details: tableFacts(table) })
  return { kind: 'compare', column: findColumn(table, name), operator: 'eq', value }
}

function findTable(catalogue: Catalogue, { schema, table }: TableName): Table {
  const found = catalogue.find(schema, table)
  if (found) return found
  throw fail('table_not_found', {
    message: `There is no table ${schema}.${table}`,
    details: { schema_name: schema, table_name: table },
  })
}

export function findColumn(table: Table, name: string): Column {
  const column = table.columns.get(name)
  if (column) return column
  const near = nearest(name, [...table.columns.keys()])
  throw fail('unknown_column', {
    message: `Table ${table.schema}.${table.name} has no column ${shown(name)}`,
    ...(near !== undefined && { hint: `Did you mean ${near}?` }),
    details: { ...tableFacts(table), column: shown(name), ...(near !== undefined && { did_you_mean: near }) },
  })
}

function writable(table: Table, name: string): Column {
  const column = findColumn(table, name)
  if (column.writable) return column
  throw fail('column_not_writable', {
    message: `Column ${name} is computed by the database`,
    details: { ...tableFacts(table), column: name },
  })
}

const assign = (table: Table, row: Row): Assignment[] =>
  Object.entries(row).map(([name, value]) => ({ column: writable(table, name), value }))

const resolveSort = (table: Table, sort: readonly Sort<string>[]): Sort<Column>[] =>
  sort.map((item) => ({ ...item, column: findColumn(table, item.column) }))

function resolveCondition(table: Table, condition: Condition<string>): Condition<Column>
function resolveCondition(
  table: Table,
  condition: Condition<string> | undefined,
): Condition<Column> | undefined
function resolveCondition(
  table: Table,
  condition: Condition<string> | undefined,
): Condition<Column> | undefined {
  if (condition === undefined) return undefined
  if (condition.kind === 'not') return { kind: 'not', term: resolveCondition(table, condition.term) }
  if (condition.kind !== 'compare')
    return { kind: condition.kind, terms: condition.terms.map((term) => resolveCondition(table, term)) }
  const { columnCast, valueCast, ...rest } = condition
  return {
    ...rest,
    column: findColumn(table, condition.column),
    ...(columnCast !== undefined && { columnCast: castOf(columnCast) }),
    ...(valueCast !== undefined && { valueCast: castOf(valueCast) }),
  }
}

function resolveOutput(catalogue: Catalogue, table: Table, terms: readonly ColumnTerm[]): Output[] {
  const output = terms.flatMap((term) => resolveTerm(catalogue, table, term))
  const names = new Set<string>()
  for (const { as } of output) {
    if (names.has(as))
      throw fail('invalid_columns', {
        hint: `${shown(as)} stands twice; give one an alias.`,
        details: { column: shown(as) },
      })
    names.add(as)
  }
  return output
}

function resolveTerm(catalogue: Catalogue, table: Table, term: ColumnTerm): Output[] {
  if (term.kind === 'all')
    return [...table.columns.values()].map((column) => ({ kind: 'column', as: column.name, column }))
  const as = checkAlias(term.alias ?? term.name)
  if (term.kind === 'column') {
    const column = findColumn(table, term.name)
    return [{ kind: 'column', as, column, ...(term.cast !== undefined && { cast: castOf(term.cast) }) }]
  }
  const relation = findRelation(catalogue, table, term)
  return [{ kind: 'relation', as, relation, columns: resolveOutput(catalogue, relation.table, term.columns) }]
}

/** An alias is the only name that the catalogue does not know: it must survive as an identifier (63 bytes, no NUL). */
function checkAlias(alias: string): string {
  if (Buffer.byteLength(alias) <= 63 && !alias.includes('\0')) return alias
  throw fail('invalid_identifier', {
    hint: 'An alias has at most 63 bytes.',
    details: { alias: shown(alias) },
  })
}

type Candidate = Relation & { readonly constraint: Constraint; readonly names: readonly string[] }

/**
 * `relation(…)` names a table with a foreign key to or from this one, a foreign-key column, or a constraint; `table!constraint`
 * decides between several. Many-to-one gives an object, one-to-many an array.
 */
function findRelation(catalogue: Catalogue, table: Table, term: RelationTerm): Relation {
  const candidates = [...outward(catalogue, table), ...inward(catalogue, table)]
  const fitting = candidates.filter((candidate) => fits(candidate, term))
  const [only, ...others] = fitting
  if (only === undefined)
    throw fail('unknown_relation', {
      message: `Table ${table.name} has no relation ${shown(term.name)}`,
      details: { ...tableFacts(table), relation: shown(term.name) },
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

/** By its own name, and by its column when there is only one. */
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
    message: `Relation ${shown(term.name)} of ${table.name} can mean several foreign keys`,
    hint: distinct
      ? `Write one of: ${names.join(', ')}`
      : 'The foreign key refers to its own table: name its column for the row above.',
    details: { ...tableFacts(table), relation: shown(term.name), candidates: names },
  })
}

const tableFacts = (table: Table) => ({ schema_name: table.schema, table_name: table.name })
const shown = (text: string): string => text.slice(0, 100)

/** The name at the smallest edit distance, if that is small beside its length. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  if (name.length > 63) return undefined
  const rated = names.map((other) => ({
    other,
    distance: editDistance(name.toLowerCase(), other.toLowerCase()),
  }))
  const best = rated.sort((a, b) => a.distance - b.distance)[0]
  return best && best.distance <= Math.ceil(best.other.length / 3) ? best.other : undefined
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
