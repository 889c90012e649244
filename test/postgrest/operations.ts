import pg from 'pg'
import { type Logic, parseFilter, parseLogic, parseNames, parseOrder, parseSelect } from './grammar.ts'
import { logicSql, orderSql, payloadSql, Refused, selectSql } from './sql.ts'
import type { FunctionRow, Schema } from './structure.ts'

/** Reads, writes and function calls of the test endpoint, with responses like PostgREST's. */
export type Reply = {
  readonly status: number
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type Asking = {
  readonly pool: pg.Pool
  readonly schema: Schema
  readonly method: string
  readonly params: URLSearchParams
  readonly prefer: string
  readonly body: string
  readonly maxRows: number | undefined
}

const { escapeIdentifier: id, escapeLiteral: literal } = pg
const NAMED = new Set(['select', 'order', 'limit', 'offset', 'columns', 'on_conflict'])

function whereSql(params: URLSearchParams, alias: string, own: ReadonlySet<string> = new Set()): string {
  const terms = [...params].flatMap(([key, value]): Logic[] => {
    if (NAMED.has(key) || own.has(key)) return []
    return [key === 'and' || key === 'or' ? parseLogic(key, value) : parseFilter(key, value)]
  })
  return terms.length === 0 ? '' : `where ${terms.map((term) => logicSql(term, alias)).join(' and ')}`
}

export async function read({ pool, schema, params, prefer, maxRows }: Asking, table: string): Promise<Reply> {
  const from = `${id(schema.name)}.${id(table)}`
  return rowsOf({ pool, schema, params, prefer, maxRows, table, from, where: whereSql(params, 't0') })
}

type Source = Pick<Asking, 'pool' | 'schema' | 'params' | 'prefer' | 'maxRows'> & {
  readonly table: string
  readonly from: string
  /** A CTE in front of the query, so that a function is called once. */
  readonly first?: string
  readonly where: string
}

async function rowsOf({
  pool,
  schema,
  params,
  prefer,
  maxRows,
  table,
  from,
  first = '',
  where,
}: Source): Promise<Reply> {
  const items = parseSelect(params.get('select') ?? '*')
  const order = orderSql(parseOrderOf(params), 't0')
  const offset = Number(params.get('offset') ?? 0)
  const limit = Math.min(
    Number(params.get('limit') ?? Number.POSITIVE_INFINITY),
    maxRows ?? Number.POSITIVE_INFINITY,
  )
  const range = `${Number.isFinite(limit) ? `limit ${limit}` : ''} offset ${offset}`
  const rows = selectSql(schema, table, items, from, `${where} ${order} ${range}`)
  const isCounted = /count=(exact|planned|estimated)/.test(prefer)
  const counted = isCounted ? `(select count(*)::int from ${from} as t0 ${where})` : 'null::int'
  const { rows: found } = await pool.query(
    `${first} select coalesce(json_agg(r), '[]')::text as body, count(*)::int as n, ${counted} as total from (${rows}) r`,
  )
  const { body, n } = found[0]
  const total: number | undefined = found[0].total ?? undefined
  if (total !== undefined && offset > total)
    throw new Refused(416, 'PGRST103', 'Requested range not satisfiable', { 'content-range': `*/${total}` })
  const span = n === 0 ? '*' : `${offset}-${offset + n - 1}`
  return {
    status: total !== undefined && n < total ? 206 : 200,
    body,
    headers: { 'content-range': `${span}/${total ?? '*'}` },
  }
}

const parseOrderOf = (params: URLSearchParams) => {
  const order = params.get('order')
  return order === null ? [] : parseOrder(order)
}

export async function write(
  { pool, schema, method, params, prefer, body }: Asking,
  table: string,
): Promise<Reply> {
  const target = `${id(schema.name)}.${id(table)}`
  const where = whereSql(params, id(table))
  const sql =
    method === 'POST'
      ? insertSql(schema, table, params, prefer, body)
      : method === 'PATCH'
        ? updateSql(schema, table, body, where)
        : `delete from ${target} ${where} returning *`
  const items = parseSelect(params.get('select') ?? '*')
  const back = selectSql(schema, table, items, 'written', '')
  const isWanted = prefer.includes('return=representation')
  const { rows } = await pool.query(
    `with written as (${sql}) select ${isWanted ? `(select coalesce(json_agg(r), '[]')::text from (${back}) r)` : `''`} as body, (select count(*)::int from written) as n`,
  )
  const { body: text, n } = rows[0]
  const count = prefer.includes('count=exact') ? n : '*'
  const span = method === 'PATCH' && n > 0 ? `0-${n - 1}` : '*'
  return {
    status: isWanted ? (method === 'POST' ? 201 : 200) : method === 'POST' ? 201 : 204,
    body: text,
    headers: { 'content-range': `${span}/${count}` },
  }
}

function insertSql(
  schema: Schema,
  table: string,
  params: URLSearchParams,
  prefer: string,
  body: string,
): string {
  const rows = JSON.parse(body)
  const list: object[] = Array.isArray(rows) ? rows : [rows]
  const columns = params.get('columns')
  const keys = Object.keys(list[0] ?? {})
  if (columns === null && list.some((row) => String(Object.keys(row)) !== String(keys)))
    throw new Refused(400, 'PGRST102', 'All object keys must match')
  const names = columns === null ? keys : parseNames(columns)
  const known = schema.tables.get(table) ?? []
  const strange = names.find((name) => known.every((column) => column.name !== name))
  if (strange !== undefined)
    throw new Refused(
      400,
      'PGRST204',
      `Could not find the '${strange}' column of '${table}' in the schema cache`,
    )
  const into = `insert into ${id(schema.name)}.${id(table)}`
  if (names.length === 0) return `${into} default values returning *`
  const target = names.map((name) => id(name)).join(', ')
  const text = Array.isArray(rows) ? body : `[${body}]`
  const payload = payloadSql(schema, table, names, text, prefer.includes('missing=default'))
  return `${into} (${target}) select ${target} from ${payload} ${conflictSql(params, prefer, names)} returning *`
}

function conflictSql(params: URLSearchParams, prefer: string, names: readonly string[]): string {
  const [, resolution] = /resolution=(ignore|merge)-duplicates/.exec(prefer) ?? []
  const target = params.get('on_conflict')
  if (resolution === undefined || target === null) return ''
  const columns = parseNames(target).map((name) => id(name))
  const sets = names.map((name) => `${id(name)} = excluded.${id(name)}`)
  return `on conflict (${columns.join(', ')}) do ${resolution === 'ignore' ? 'nothing' : `update set ${sets.join(', ')}`}`
}

function updateSql(schema: Schema, table: string, body: string, where: string): string {
  const names = Object.keys(JSON.parse(body))
  const payload = payloadSql(schema, table, names, `[${body}]`, false)
  const sets = names.map((name) => `${id(name)} = payload.${id(name)}`)
  return `update ${id(schema.name)}.${id(table)} set ${sets.join(', ')} from ${payload} payload ${where} returning ${id(table)}.*`
}

export async function call(
  { pool, schema, method, params, prefer, body, maxRows }: Asking,
  name: string,
): Promise<Reply> {
  const isRead = method === 'GET'
  const found = schema.functions.find((one) => one.name === name)
  const given: Readonly<Record<string, unknown>> = isRead
    ? argumentsOf(params, found)
    : JSON.parse(body || '{}')
  if (found === undefined || Object.keys(given).some((key) => !found.names.includes(key)))
    throw new Refused(
      404,
      'PGRST202',
      `Could not find the function ${schema.name}.${name} in the schema cache`,
    )
  const used = found.names
    .map((key, index) => ({ key, type: found.types[index] }))
    .filter(({ key }) => key in given)
  const types = used.map(({ key, type }) => `${id(key)} ${type}`)
  const values = used.map(({ key }) => `${id(key)} => a.${id(key)}`)
  const text = isRead ? JSON.stringify(given) : body
  const from = used.length === 0 ? '' : `json_to_record(${literal(text)}) as a(${types.join(', ')}), lateral `
  const called = `${from}${id(schema.name)}.${id(name)}(${values.join(', ')})`
  const client = await pool.connect()
  try {
    await client.query(isRead ? 'begin read only' : 'begin')
    const reply = await rowsOfCall(client, called, { schema, params, prefer, maxRows, found })
    await client.query('commit')
    return reply
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

type Called = Pick<Asking, 'schema' | 'params' | 'prefer' | 'maxRows'> & { readonly found: FunctionRow }

async function rowsOfCall(
  client: pg.PoolClient,
  called: string,
  { schema, params, prefer, maxRows, found }: Called,
): Promise<Reply> {
  if (found.returns === 'void') {
    await client.query(`select from ${called} as f`)
    return { status: 204 }
  }
  if (found.returns === 'value' || found.returns === 'values') {
    const list = `json_agg(f)${found.returns === 'value' ? '->0' : ''}`
    const { rows } = await client.query(
      `select coalesce(${list}, '${found.returns === 'value' ? 'null' : '[]'}')::text as body from ${called} as f`,
    )
    return { status: 200, body: rows[0].body }
  }
  const own = new Set(found.names)
  const where = whereSql(params, 't0', own)
  // All queries run in the open transaction, on one client in place of the pool.
  const pool = client as unknown as pg.Pool
  const reply = await rowsOf({
    pool,
    schema,
    params,
    prefer,
    maxRows,
    table: found.target,
    from: 'called',
    first: `with called as materialized (select f.* from ${called} as f)`,
    where,
  })
  return found.returns === 'row' ? { ...reply, body: (reply.body ?? '').slice(1, -1) } : reply
}

/** The function's arguments among the query parameters; the others are filters. */
const argumentsOf = (params: URLSearchParams, found: FunctionRow | undefined): Record<string, string> =>
  Object.fromEntries([...params].filter(([key]) => found?.names.includes(key)))
