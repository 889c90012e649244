import type { CallRequest, Persona, RowsResult } from '#databases/drivers/driver.ts'
import { callable, type FunctionRow, functionsSql } from '#databases/drivers/postgres/catalogue/functions.ts'
import type { RunUntrusted } from '#databases/drivers/postgres/pool/untrusted-connections.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { finishPooled } from '#databases/drivers/postgres/protocol/pooler.ts'
import { RowQuery } from '#databases/drivers/postgres/protocol/row-query.ts'
import { become } from '#databases/drivers/postgres/roles/persona.ts'
import type { Runner } from '#databases/drivers/postgres/runner.ts'
import {
  type BuiltSql,
  bind,
  createSql,
  type SqlBuilder,
} from '#databases/drivers/postgres/sql/sql-builder.ts'
import { selectSql, writtenText } from '#databases/drivers/postgres/sql/statements.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { asTable, type CallableFunction, chooseFunction } from '#databases/plan/functions.ts'
import type { ReadPlan } from '#databases/plan/plan.ts'
import { resolve } from '#databases/plan/resolve.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'

/**
 * Calls a function as a source of rows, which are filtered, sorted and paged like those of a table. Not on the connections of plans, where
 * settings, locks or temporary objects of the function would remain.
 */
export async function callFunction(
  run: Runner,
  runUntrusted: RunUntrusted,
  request: CallRequest,
  { persona, maxBytes }: { readonly persona: Persona | undefined; readonly maxBytes: number },
): Promise<RowsResult> {
  const { table } = request.read
  const rows = (await run.systemValue(functionsSql(table), request.presence)) as readonly FunctionRow[] // as the statement builds them
  const candidates = rows.map(callable).filter((found) => found !== undefined)
  const chosen = chooseFunction(candidates, table, request.arguments)
  const plan = planOf(chosen, request)
  return runUntrusted(request.presence, async (client) => {
    const call: FunctionCall = { client, chosen, plan, given: request, maxBytes }
    await begin(client, request.readOnly)
    if (persona !== undefined) await become(client, persona)
    const result = request.read.count === undefined ? await readRows(call) : await readCounted(call)
    if (client.pooled === undefined) await execute(client, createSql('commit'))
    else await finishPooled(client, 'commit').catch((error) => Promise.reject(failureOf(error)))
    return result
  })
}

/** With a pooler the transaction is already open. */
async function begin(client: RowClient, readOnly: boolean): Promise<void> {
  if (client.pooled === undefined) await execute(client, createSql(readOnly ? 'begin read only' : 'begin'))
  else if (readOnly) await execute(client, createSql('set transaction read only'))
}

type FunctionCall = {
  readonly client: RowClient
  readonly chosen: CallableFunction
  readonly plan: ReadPlan
  readonly given: CallRequest
  readonly maxBytes: number
}

function planOf(chosen: CallableFunction, { read }: CallRequest): ReadPlan {
  const table = asTable(chosen)
  const only = { tables: [table], find: () => table, referencing: () => [] }
  // A caller who may call a function may read its result.
  return resolve(only, read, EVERY_RIGHT) as ReadPlan // a read request gives a read plan
}

async function readRows(call: FunctionCall): Promise<RowsResult> {
  const { plan, client, chosen } = call
  const query = await execute(client, statementOf(call, plan), call)
  const rows = returnsNoRows(chosen, plan) ? 0 : (query.writer?.rows ?? 0)
  const json = returnsNoRows(chosen, plan) ? [EMPTY] : (query.writer?.take() ?? [EMPTY])
  return {
    json,
    facts: () => ({ rows, hasMore: plan.request.page.open && query.writer?.more === true, total: undefined }),
  }
}

const EMPTY = Buffer.from('[]')
const returnsNoRows = (chosen: CallableFunction, { request }: ReadPlan): boolean =>
  request.head || chosen.columns === undefined

/** Counts all rows and reads a page with a single call, because the function may write, and a second call may return other rows. */
async function readCounted(call: FunctionCall): Promise<RowsResult> {
  const { plan, client, chosen } = call
  const { limit, offset, open } = plan.request.page
  const page = { limit: Number.MAX_SAFE_INTEGER, offset: 0, open: false }
  const all = statementOf(call, { ...plan, request: { ...plan.request, page } })
  await execute(client, { ...all, text: `declare called scroll cursor for ${all.text}` })
  const { affected } = await execute(client, createSql('move forward all in called'))
  const total = chosen.columns === undefined ? 0 : affected
  if (returnsNoRows(chosen, plan)) return { json: [EMPTY], facts: () => ({ rows: 0, hasMore: false, total }) }
  await execute(client, createSql(`move absolute ${Math.min(offset, total)} in called`))
  const { writer } = await execute(
    client,
    { ...createSql(`fetch forward ${limit} in called`), members: all.members },
    call,
  )
  const rows = writer?.rows ?? 0
  return {
    json: writer?.take() ?? [EMPTY],
    facts: () => ({ rows, hasMore: open && offset + rows < total, total }),
  }
}

const statementOf = ({ chosen, given }: FunctionCall, plan: ReadPlan): BuiltSql =>
  selectSql(plan, (sql) => callText(sql, chosen, given))

/** `"public"."f"("a" => $1::integer, variadic "b" => $2::text[])`; names and types are from the catalogue. */
function callText(
  sql: SqlBuilder,
  { schema, name, arguments: parameters, columns, isValue }: CallableFunction,
  { arguments: given, areTexts }: CallRequest,
): string {
  const texts = parameters
    .filter(({ column }) => Object.hasOwn(given, column.name))
    .map(({ column, variadic }) => {
      const asked = given[column.name] ?? null
      const value = areTexts ? bind(sql, String(asked), column) : writtenText(sql, column, asked)
      return `${variadic ? 'variadic ' : ''}${quoteName(column.name)} => ${value}::${column.cast}`
    })
  const [value] = columns ?? []
  const named = isValue && value ? `(${quoteName(value.name)})` : ''
  return `${quoteName(schema)}.${quoteName(name)}(${texts.join(', ')}) as t${named}`
}

async function execute(client: RowClient, sql: BuiltSql, call?: FunctionCall): Promise<RowQuery> {
  const request = call?.plan.request
  const query = new RowQuery(client, sql, {
    name: '',
    members: sql.members.length > 0 ? sql.members : undefined,
    stripNulls: request?.stripNulls ?? false,
    limit: request?.page.limit ?? Number.POSITIVE_INFINITY,
    highWater: Number.POSITIVE_INFINITY,
    ...(call && { maxBytes: call.maxBytes }),
  })
  client.query(query)
  try {
    await query.ready
    return query
  } catch (error) {
    throw failureOf(error, { ...sql, table: undefined, written: [], given: () => [] })
  }
}
