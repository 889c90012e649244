import { castOf } from '#databases/casts.ts'
import type { Catalogue, Column, Table } from '#databases/catalogue.ts'
import { fail } from '#databases/failures.ts'
import { findColumn, findTable, shown, tableFacts, writable } from '#databases/lookup.ts'
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
  Row,
  Sort,
  UpdatePlan,
  UpdateRequest,
} from '#databases/plan.ts'
import { findRelation } from '#databases/relations.ts'

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
