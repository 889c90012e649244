import { fail } from '#databases/failures.ts'
import { type ColumnOptions, parseColumns } from '#databases/request/columns.ts'
import { type ConditionOptions, readConditions, readWhere } from '#databases/request/conditions.ts'
import { type Body, flag, type Naming, renaming, wholeNumber } from '#databases/request/fields.ts'
import type {
  ColumnTerm,
  Condition,
  CountMode,
  CountRequest,
  DeleteRequest,
  InsertRequest,
  Json,
  Page,
  ReadRequest,
  Scope,
  Sort,
  TableName,
  UpdateRequest,
} from '#databases/request/request.ts'
import { readSelect } from '#databases/request/select.ts'
import { readTable } from '#databases/request/table-name.ts'
import { allOf } from '#databases/request/terms.ts'
import { isAssignments, readConflict, readRows, readSet } from '#databases/request/write-body.ts'

export type RequestOptions = Naming & {
  readonly limits: RequestLimits
}

/** gateway.md 18. */
type RequestLimits = {
  readonly columns: number
  readonly conditions: number
  readonly nesting: number
  /** Depth of relations in relations. */
  readonly relations: number
  /** Rows of one insert. */
  readonly insertRows: number
  /** Rows of a fetch without a limit. */
  readonly rows: number
  readonly maxRows: number
}

export function readFetch(body: Body, options: RequestOptions): ReadRequest {
  const table = readTable(body)
  return {
    kind: 'read',
    table,
    columns: readOutput(body, table, options),
    where: readFilter(body, options),
    sort: readSort(body, options),
    page: readPage(body, options.limits),
    count: readCountMode(body),
    head: flag(body, 'head', false),
    stripNulls: flag(body, 'strip_nulls', false),
  }
}

export function readCount(body: Body, options: RequestOptions): CountRequest {
  return {
    kind: 'count',
    table: readTable(body),
    where: readFilter(body, options),
    mode: readCountMode(body) ?? 'exact',
  }
}

export function readInsert(body: Body, options: RequestOptions): InsertRequest {
  const table = readTable(body)
  return {
    kind: 'insert',
    table,
    rows: readRows(body.insert_body, options, options.limits.insertRows),
    conflict: readConflict(body, options, options.limits.columns),
    defaultToNull: flag(body, 'default_to_null', false),
    ...readReturning(body, table, options),
    head: flag(body, 'head', false),
    stripNulls: flag(body, 'strip_nulls', false),
  }
}

export function readUpdate(body: Body, options: RequestOptions): UpdateRequest {
  const assignments = isAssignments(body.columns)
  const set = readSet(body, options)
  const where = readFilter(body, options)
  if (where === undefined) refuseUnbounded(body)
  return {
    kind: 'update',
    set,
    ...readWrite(assignments ? { ...body, columns: undefined } : body, where, options),
  }
}

export function readDelete(body: Body, options: RequestOptions): DeleteRequest {
  const where = readFilter(body, options)
  // The body was parsed from JSON text, so every value in it is a Json.
  const resource = (body.resource_id ?? undefined) as Json | undefined
  if (where === undefined && resource === undefined) refuseUnbounded(body)
  if (typeof resource === 'object' && !JSON.isRawJSON(resource))
    throw fail('invalid_condition', { hint: 'resource_id is one value.', details: { field: 'resource_id' } })
  return { kind: 'delete', resource, ...readWrite(body, where, options) }
}

function readWrite(body: Body, where: Condition<string> | undefined, options: RequestOptions) {
  const table = readTable(body)
  return {
    table,
    where,
    sort: readSort(body, options),
    limit: wholeNumber(body, 'limit'),
    offset: wholeNumber(body, 'offset') ?? 0,
    single: flag(body, 'single', false),
    ...readReturning(body, table, options),
    count: readCountMode(body),
    head: flag(body, 'head', false),
    stripNulls: flag(body, 'strip_nulls', false),
  }
}

function refuseUnbounded(body: Body): void {
  if (body.allow_unbounded === true) return
  throw fail('unbounded_write', {
    hint: 'Add conditions, or allow_unbounded: true if every row is meant.',
    details: { field: 'conditions' },
  })
}

/** The columns that a write returns; an empty list names none. */
function readReturning(body: Body, table: TableName, options: RequestOptions) {
  const { columns, select } = body
  const isNamed = Array.isArray(columns) ? columns.length > 0 : (columns ?? '') !== ''
  return {
    columns: readOutput(body, table, options),
    namesColumns: isNamed || (select ?? undefined) !== undefined,
  }
}

function readOutput(body: Body, table: TableName, options: RequestOptions): ColumnTerm[] {
  if (body.select !== undefined && body.select !== null) {
    if (body.columns !== undefined) throw structured('select and columns exclude each other.', 'select')
    return readSelect(body.select, columnOptions(table, options))
  }
  const { columns } = body
  if (columns === undefined || columns === null || columns === '') return [{ kind: 'all' }]
  const list = typeof columns === 'string' ? [columns] : columns
  if (!Array.isArray(list) || !list.every((column) => typeof column === 'string'))
    throw fail('invalid_columns', {
      hint: 'columns is a text or a list of texts.',
      details: { field: 'columns' },
    })
  return list.length === 0 ? [{ kind: 'all' }] : parseColumns(list, columnOptions(table, options))
}

const columnOptions = (table: TableName, options: RequestOptions): ColumnOptions => ({
  columns: options.limits.columns,
  nesting: options.limits.relations,
  rename: renaming(options),
  owner: (path) =>
    path.at(-1) === table.table && (path.length === 1 || (path.length === 2 && path[0] === table.schema)),
})

/** Joins `conditions` and the structured `where` and `where_filters` by AND. */
function readFilter(body: Body, options: RequestOptions): Condition<string> | undefined {
  const { conditions, nesting } = options.limits
  const rename = renaming(options)
  const plain: ConditionOptions = { conditions, nesting, rename, code: 'invalid_condition' }
  const other: ConditionOptions = { ...plain, code: 'invalid_structured_select_request' }
  const terms = [
    ...readConditions(body.conditions, plain),
    ...readWhere(body.where, other),
    ...readConditions(body.where_filters, other),
  ]
  return terms.length === 0 ? undefined : allOf(terms)
}

/** The fixed parts of a public route, in the grammar of a body (gateway.md 13). */
export function readScope(fixed: FixedParts, options: RequestOptions): Scope {
  const { conditions, nesting } = options.limits
  const rename = renaming(options)
  const terms = readConditions(fixed.conditions, { conditions, nesting, rename, code: 'invalid_condition' })
  return {
    table: fixed.table === undefined ? undefined : readTable({ table_name: fixed.table }),
    where: terms.length === 0 ? undefined : allOf(terms),
    columns: fixed.columns?.map(rename),
    allowsUpdate: fixed.allowsUpdate,
  }
}

type FixedParts = {
  readonly table: string | undefined
  /** A condition, or a list of them. */
  readonly conditions: unknown
  readonly columns: readonly string[] | undefined
  readonly allowsUpdate: boolean
}

function readSort(body: Body, options: RequestOptions): Sort<string>[] {
  const plain = body.sort_by ?? body.sortBy ?? body.order_by
  const given = plain ?? body.orderBy
  if (given === undefined || given === null) return []
  if (plain !== undefined && plain !== null && body.orderBy !== undefined)
    throw structured('sort_by and orderBy exclude each other.', 'orderBy')
  const bad = plain === undefined || plain === null ? 'invalid_structured_select_request' : 'invalid_sort'
  const items = Array.isArray(given) ? given : [given]
  const { columns: maximum } = options.limits
  if (items.length > maximum) throw fail('too_many_columns', { details: { field: 'sort_by', maximum } })
  // GET /data has `sort_direction` beside a plain name.
  const named = (item: unknown) =>
    typeof item === 'string' ? { field: item, direction: body.sort_direction ?? 'asc' } : item
  return items.map((item) => readSortItem(named(item), bad, renaming(options)))
}

function readSortItem(
  item: unknown,
  code: 'invalid_sort' | 'invalid_structured_select_request',
  rename: (name: string) => string,
): Sort<string> {
  const bad = () =>
    fail(code, {
      hint: 'Write { "field": name, "direction": "asc" | "desc" }.',
      details: { field: code === 'invalid_sort' ? 'sort_by' : 'orderBy' },
    })
  if (typeof item !== 'object' || item === null || Array.isArray(item)) throw bad()
  // Members that are null count as absent.
  const { field, column = field, direction = 'asc', nulls } = present(item)
  const descending = typeof direction === 'string' ? DIRECTIONS.get(direction.toLowerCase()) : undefined
  if (typeof column !== 'string' || column === '' || descending === undefined) throw bad()
  if (field !== undefined && field !== column) throw bad()
  if (nulls !== undefined && nulls !== 'first' && nulls !== 'last') throw bad()
  return { column: rename(column), descending, ...(nulls && { nulls }) }
}

const present = (item: object): Body =>
  Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null))

const DIRECTIONS = new Map([
  ['asc', false],
  ['ascending', false],
  ['desc', true],
  ['descending', true],
])

function readPage(body: Body, limits: RequestLimits): Page {
  const size = wholeNumber(body, 'page_size')
  const current = wholeNumber(body, 'current_page')
  const asked = wholeNumber(body, 'limit') ?? size
  if (asked !== undefined && asked > limits.maxRows)
    throw fail('limit_too_large', {
      hint: `At most ${limits.maxRows} (gateway.max_rows)`,
      details: { maximum: limits.maxRows, given: asked },
    })
  const limit = asked ?? Math.min(limits.rows, limits.maxRows)
  const offset =
    wholeNumber(body, 'offset') ?? (current === undefined ? 0 : Math.max(0, current - 1) * (size ?? limit))
  if (!Number.isSafeInteger(offset)) throw fail('invalid_limit', { details: { field: 'current_page' } })
  return { limit, offset, open: asked === undefined }
}

function readCountMode(body: Body): CountMode | undefined {
  const { count } = body
  if (count === undefined || count === null || count === false) return undefined
  if (count === true) return 'exact'
  if (count === 'exact' || count === 'planned' || count === 'estimated') return count
  throw fail('invalid_count', { details: { field: 'count' } })
}

const structured = (hint: string, field: string) =>
  fail('invalid_structured_select_request', { hint, details: { field } })
