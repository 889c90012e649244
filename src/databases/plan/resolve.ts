import { fail } from '#databases/failures.ts'
import { allColumns } from '#databases/plan/all-columns.ts'
import { castOf } from '#databases/plan/casts.ts'
import type { Catalogue, Column, Table } from '#databases/plan/catalogue.ts'
import { inScope, seenThrough } from '#databases/plan/in-scope.ts'
import { findColumn, findTable, tableFacts, truncated, writable } from '#databases/plan/lookup.ts'
import type {
  Assignment,
  CountPlan,
  DeletePlan,
  InsertPlan,
  Output,
  Plan,
  ReadPlan,
  UpdatePlan,
} from '#databases/plan/plan.ts'
import { findRelation } from '#databases/plan/relations.ts'
import { readsColumns, resourceOf } from '#databases/plan/required-rights.ts'
import { resolveCondition } from '#databases/plan/resolve-condition.ts'
import { type Rights, toRead } from '#databases/plan/rights.ts'
import type {
  ColumnTerm,
  Condition,
  CountRequest,
  DataRequest,
  DeleteRequest,
  InsertRequest,
  Json,
  ReadRequest,
  Row,
  Sort,
  UpdateRequest,
  WriteRequest,
} from '#databases/request/request.ts'

/**
 * Finds every name of a request in the catalogue. A pure function of request, catalogue and rights. Rights to related tables are required
 * before their names are looked up; the caller of this function has required the right to the table itself.
 */
export function resolve(catalogue: Catalogue, request: DataRequest, rights: Rights): Plan {
  const table = findTable(catalogue, request.table)
  const { scope } = request
  if (scope === undefined) return planOf({ catalogue, table, rights }, request)
  return inScope(planOf({ catalogue, table: seenThrough(scope, table), rights }, request), table, scope)
}

function planOf(found: PlanContext, request: DataRequest): Plan {
  switch (request.kind) {
    case 'read':
      return planRead(found, request)
    case 'count':
      return planCount(found, request)
    case 'insert':
      return planInsert(found, seenBy(found, request))
    case 'update':
      return planUpdate(found, seenBy(found, request))
    case 'delete':
      return planDelete(found, seenBy(found, request))
  }
}

type PlanContext = { readonly catalogue: Catalogue; readonly table: Table; readonly rights: Rights }

/** A write by a caller without the right to read returns no rows; if it would read columns, it is refused. */
function seenBy<R extends WriteRequest>(
  { table, rights }: PlanContext,
  request: R,
): R & { readonly head: boolean } {
  const right = toRead(table)
  if (rights.may(right)) return request
  if (readsColumns(request, table)) rights.require([right])
  return { ...request, head: true }
}

function planRead(found: PlanContext, request: ReadRequest): ReadPlan {
  const { table, rights } = found
  const where = resolveCondition(table, request.where)
  const output = resolveOutput(found, request.columns)
  return { kind: 'read', request, rights, table, where, sort: resolveSort(table, request.sort), output }
}

const planCount = ({ table, rights }: PlanContext, request: CountRequest): CountPlan => ({
  kind: 'count',
  request,
  rights,
  table,
  where: resolveCondition(table, request.where),
})

function planInsert(found: PlanContext, request: InsertRequest): InsertPlan {
  const { table, rights } = found
  const { rows } = request
  const names = new Set<string>()
  for (const row of rows) for (const name of Object.keys(row)) names.add(name)
  const columns = [...names].map((name) => writable(table, name))
  const output = resolveOutput(found, request.columns)
  const conflict = request.conflict && {
    columns: request.conflict.columns.map((name) => findColumn(table, name)),
    set: request.conflict.update && assign(table, request.conflict.update),
  }
  return { kind: 'insert', request, rights, table, columns, rows, conflict, output }
}

function planUpdate(found: PlanContext, request: UpdateRequest): UpdatePlan {
  const { table, rights } = found
  const where = resolveCondition(table, request.where)
  const set = assign(table, request.set)
  const sort = resolveSort(table, request.sort)
  const output = resolveOutput(found, request.columns)
  return { kind: 'update', request, rights, table, set, where, sort, output }
}

function planDelete(found: PlanContext, request: DeleteRequest): DeletePlan {
  const { table, rights } = found
  const named = resolveCondition(table, request.where)
  const resource = request.resource === undefined ? undefined : resourceIs(table, request.resource)
  const where: DeletePlan['where'] =
    named && resource ? { kind: 'all', terms: [resource, named] } : (resource ?? named)
  const sort = resolveSort(table, request.sort)
  const output = resolveOutput(found, request.columns)
  return { kind: 'delete', request, rights, table, where, sort, output }
}

function resourceIs(table: Table, value: Json): Condition<Column> {
  const name = resourceOf(table)
  if (name === undefined)
    throw fail('missing_resource_key', { hint: 'Name the rows by conditions.', details: tableFacts(table) })
  return { kind: 'compare', column: findColumn(table, name), operator: 'eq', value }
}

const assign = (table: Table, row: Row): Assignment[] =>
  Object.entries(row).map(([name, value]) => ({ column: writable(table, name), value }))

const resolveSort = (table: Table, sort: readonly Sort<string>[]): Sort<Column>[] =>
  sort.map((item) => ({ ...item, column: findColumn(table, item.column) }))

function resolveOutput(found: PlanContext, terms: readonly ColumnTerm[]): readonly Output[] {
  if (terms.length === 1 && terms[0]?.kind === 'all') return allColumns(found.table)
  const output = terms.flatMap((term) => resolveTerm(found, term))
  const names = new Set<string>()
  for (const { as } of output) {
    if (names.has(as))
      throw fail('invalid_columns', {
        hint: `${truncated(as)} is given twice; give one an alias.`,
        details: { column: truncated(as) },
      })
    names.add(as)
  }
  return output
}

function resolveTerm(found: PlanContext, term: ColumnTerm): readonly Output[] {
  const { catalogue, table, rights } = found
  if (term.kind === 'all') return allColumns(table)
  const as = checkAlias(term.alias ?? term.name)
  if (term.kind === 'column') {
    const column = findColumn(table, term.name)
    return [{ kind: 'column', as, column, ...(term.cast !== undefined && { cast: castOf(term.cast) }) }]
  }
  const relation = findRelation(catalogue, table, term, rights)
  const inner = { ...found, table: relation.table }
  return [{ kind: 'relation', as, relation, columns: resolveOutput(inner, term.columns) }]
}

/** An alias is the only name that is not of the catalogue, so it must be a valid identifier (63 bytes, no NUL). */
function checkAlias(alias: string): string {
  if (Buffer.byteLength(alias) <= 63 && !alias.includes('\0')) return alias
  throw fail('invalid_identifier', {
    hint: 'An alias has at most 63 bytes.',
    details: { alias: truncated(alias) },
  })
}
