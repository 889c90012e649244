import { requireAbility } from '#databases/drivers/abilities.ts'
import type { RowsResult } from '#databases/drivers/driver.ts'
import type { Body } from '#databases/request/fields.ts'
import { readFetch } from '#databases/request/read-request.ts'
import type { Row } from '#databases/request/request.ts'
import { operatorOf } from '#databases/request/terms.ts'
import { meantMember } from '#kernel/closest-name.ts'
import { edge, misspeltMember } from '#kernel/http/failures.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { type GatewayCaller, kernelOf } from '../caller/caller.ts'
import { requireOwnSession, requirePersona } from '../caller/caller-rights.ts'
import { rowsOfAnswer, seeRows } from '../event-rows.ts'
import { requestOptionsOf } from '../prepare.ts'
import { explainReadOnly } from '../read-only-client.ts'

/** A call from a body or a URL. `order` and `filters` are not parsed yet. */
export type RequestedCall = {
  readonly function: string
  readonly schema?: unknown
  readonly args?: Row
  readonly select?: unknown
  readonly filters?: unknown
  readonly order?: unknown
  readonly count?: unknown
  readonly limit?: unknown
  readonly offset?: unknown
  readonly head?: unknown
}

/** Calls a function of the client's database (gateway.md 7). For GET, arguments are texts, and functions that write are rejected. */
export async function callFunction(
  kernel: Kernel,
  caller: GatewayCaller,
  requested: RequestedCall,
  options: { readonly byAddress: boolean },
): Promise<RowsResult> {
  const { client, backend, requestId, presence } = caller
  requirePersona(caller)
  requireOwnSession(caller)
  const read = readFetch(
    {
      table_name: requested.function,
      schema_name: requested.schema,
      columns: requested.select,
      conditions: requested.filters,
      sort_by: orderOf(requested.order),
      count: requested.count,
      limit: requested.limit,
      offset: requested.offset,
      head: requested.head,
    },
    requestOptionsOf(kernel),
  )
  const call = {
    read,
    arguments: requested.args ?? {},
    areTexts: options.byAddress,
    readOnly: options.byAddress || client.isLogging || client.isFrozen,
    presence,
  }
  const result = await requireAbility(backend, 'call')(call).catch(explainReadOnly(client))
  const name = `${read.table.schema}.${read.table.table}`
  const { rows, json } = await seeRows(
    kernel,
    { name: 'gateway_rpc', client: client.name, table: undefined },
    result,
  )
  await emit(
    kernelOf(kernel, caller),
    'gateway_rpc',
    { client: client.name, request_id: requestId, function: name, affected_rows: 0 },
    rowsOfAnswer(kernel, { json, affected: 0 }),
  )
  return rows
}

/** Members of a body that contains `args`. */
const WRAPPER = new Set(['schema', 'args', 'select', 'filters', 'count', 'limit', 'offset', 'order', 'head'])

/** The body of `POST /rpc/{name}`: either a body with `args` and only known members, or the arguments themselves. */
export function callOfBody(name: string, body: Body): RequestedCall {
  const names = Object.keys(body)
  const isWrapper = names.length > 0 && names.every((key) => WRAPPER.has(key))
  if (!isWrapper && isRecord(body.args)) requireMembers(names)
  if (!isWrapper) return { function: name, args: body as Row } // parsed from JSON
  const { args } = body
  if (args !== undefined && (typeof args !== 'object' || Array.isArray(args)))
    throw edge('validation_error', {
      message: 'args must be an object',
      details: { field: 'args', in: 'body' },
    })
  return { ...body, function: name, args: (args ?? {}) as Row }
}

const isRecord = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Beside `args`, a name that is near to a member is not taken for an argument. */
function requireMembers(names: readonly string[]): void {
  for (const name of names) {
    const meant = WRAPPER.has(name) ? undefined : meantMember(name, [...WRAPPER])
    if (meant !== undefined) throw misspeltMember({ path: name, meant })
  }
}

const RESERVED = new Set(['schema', 'select', 'count', 'limit', 'offset', 'order', 'head', 'api_key'])

/** The query of `GET /rpc/{name}`: reserved names, filters (`age=gt.5`) and arguments. */
export function callOfQuery(name: string, query: Body): RequestedCall {
  const rest = Object.entries(query).filter(([key]) => !RESERVED.has(key))
  const twice = rest.find(([, value]) => typeof value !== 'string')?.[0]
  if (twice !== undefined)
    throw edge('validation_error', {
      message: `${twice} is given twice`,
      details: { field: twice, in: 'querystring' },
    })
  const texts = rest.map(([key, value]) => [key, String(value)] as const)
  const { schema, select, count, limit, offset, order, head } = query
  const filters = texts
    .filter(([, text]) => isPredicate(text))
    .map(([column, text]) => filterOf(column, text))
  return {
    function: name,
    args: Object.fromEntries(texts.filter(([, text]) => !isPredicate(text))),
    ...(filters.length > 0 ? { filters } : {}),
    schema,
    select,
    count,
    limit,
    offset,
    order,
    head: head === 'true' || head === true,
  }
}

/** `gt.5`, `not.in.(1,2)`. */
const isPredicate = (text: string): boolean => {
  const [first = '', second] = text.split('.', 2)
  return second !== undefined && (first === 'not' || operatorOf(first) !== undefined)
}

/** Uses the grammar of conditions. The column is quoted, so that it is always parsed as one name. */
const filterOf = (column: string, text: string) => ({
  operator: 'or',
  value: `"${column.replace(/["\\]/g, '\\$&')}".${text}`,
})

/** `{column, ascending}`, a list of them, or `name.desc.nullslast,id` → what `sort_by` takes. */
function orderOf(order: unknown): unknown {
  if (order === undefined || order === null || order === '') return undefined
  if (typeof order === 'string') return order.split(',').map(orderOfText)
  return Array.isArray(order) ? order.map(orderOfItem) : orderOfItem(order)
}

/** `name.desc.nullslast`: the column, followed by keywords of the order. */
function orderOfText(text: string) {
  let column = text.trim()
  const taken = (words: readonly string[]): string | undefined => {
    const word = words.find((ending) => column.length > ending.length + 1 && column.endsWith(`.${ending}`))
    if (word !== undefined) column = column.slice(0, -word.length - 1)
    return word
  }
  const nulls = taken(['nullsfirst', 'nullslast'])?.slice('nulls'.length)
  const direction = taken(['asc', 'desc']) ?? 'asc'
  return { column, direction, ...(nulls === undefined ? {} : { nulls }) }
}

function orderOfItem(item: unknown): unknown {
  if (typeof item === 'string') return orderOfText(item)
  if (typeof item !== 'object' || item === null || !('ascending' in item)) return item
  const { ascending, ...rest } = item
  return { direction: ascending === false ? 'desc' : 'asc', ...rest }
}
