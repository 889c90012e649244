import pg from 'pg'
import type { Item, Logic, Order } from './grammar.ts'
import type { KeyRow, Schema } from './structure.ts'

/** SQL statements of the test endpoint. Like PostgREST, it writes untyped literals, so that the database infers their type. */

/** An error with one of PostgREST's own codes. */
export class Refused extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

const { escapeIdentifier: id, escapeLiteral } = pg
// escapeLiteral writes E'…' if the text contains a backslash.
const literal = (text: string): string => escapeLiteral(text).trim()

/** `alias` is the SQL alias of `from`. Relations are resolved from the table `origin`. */
export function selectSql(
  schema: Schema,
  origin: string,
  items: readonly Item[],
  from: string,
  rest: string,
  depth = 0,
): string {
  const alias = `t${depth}`
  const columns = items.map((item) => itemSql(schema, origin, item, alias, depth))
  return `select ${columns.join(', ')} from ${from} as ${alias} ${rest}`
}

function itemSql(schema: Schema, origin: string, item: Item, alias: string, depth: number): string {
  if (item.kind === 'star') return `${alias}.*`
  if (item.kind === 'column') {
    const column = `${alias}.${id(item.name)}`
    const cast = item.cast === undefined ? column : `cast(${column} as ${item.cast})`
    return `${cast} as ${id(item.alias ?? item.name)}`
  }
  const { target, hint, items } = item
  const { from, on, many } = relationOf(schema, origin, target, hint, alias, `t${depth + 1}`)
  const limit = many && schema.maxRows !== undefined ? ` limit ${schema.maxRows}` : ''
  const rows = selectSql(
    schema,
    from.table,
    items,
    from.sql,
    `${on === '' ? '' : `where ${on}`}${limit}`,
    depth + 1,
  )
  const value = many
    ? `(select coalesce(json_agg(r), '[]') from (${rows}) r)`
    : `(select row_to_json(r.*) from (${rows} limit 1) r)`
  return `${value} as ${id(item.alias ?? target)}`
}

type Relation = {
  readonly from: { readonly table: string; readonly sql: string }
  readonly on: string
  readonly many: boolean
}

/** Finds a relation by table, constraint, column or computed relationship; a hint disambiguates (PostgREST's "Resource embedding"). */
function relationOf(
  schema: Schema,
  origin: string,
  target: string,
  hint: string | undefined,
  outer: string,
  inner: string,
): Relation {
  const found = [
    ...computed(schema, origin, target, outer),
    ...keyed(schema, origin, target, hint, outer, inner),
  ]
  const [only, ...others] = found
  if (only === undefined)
    throw new Refused(
      400,
      'PGRST200',
      `Could not find a relationship between '${origin}' and '${target}' in the schema cache`,
    )
  // A computed relationship takes precedence over a foreign key.
  if (others.length > 0 && only.on !== '')
    throw new Refused(
      300,
      'PGRST201',
      `Could not embed because more than one relationship was found for '${origin}' and '${target}'`,
    )
  return only
}

function computed(schema: Schema, origin: string, target: string, outer: string): Relation[] {
  return schema.functions
    .filter(({ name, takes }) => name === target && takes === origin)
    .map(({ name, returns, target: table }) => ({
      from: { table, sql: `${id(schema.name)}.${id(name)}(${outer})` },
      on: '',
      many: returns === 'rows',
    }))
}

function keyed(
  schema: Schema,
  origin: string,
  target: string,
  hint: string | undefined,
  outer: string,
  inner: string,
): Relation[] {
  const of = (
    key: KeyRow,
    table: string,
    own: readonly string[],
    theirs: readonly string[],
    many: boolean,
  ): Relation => ({
    from: { table, sql: `${id(schema.name)}.${id(table)}` },
    on: own
      .map((column, index) => `${outer}.${id(column)} = ${inner}.${id(theirs[index] ?? '')}`)
      .join(' and '),
    many: many && !key.unique,
  })
  const names = ({ name, columns, refers }: KeyRow) => [
    name,
    ...(columns.length === 1 ? [...columns, ...refers] : []),
  ]
  return schema.keys.flatMap((key) => {
    const isSelf = key.table === key.to
    const upwards =
      key.table === origin &&
      (isSelf
        ? hint === undefined && key.columns.length === 1 && key.columns[0] === target
        : hint === undefined
          ? [key.to, key.name, key.columns.length === 1 ? key.columns[0] : ''].includes(target)
          : target === key.to && names(key).includes(hint))
    const downwards =
      key.to === origin &&
      target === key.table &&
      (hint === undefined || (isSelf ? key.columns[0] === hint : names(key).includes(hint)))
    return [
      ...(upwards ? [of(key, key.to, key.columns, key.refers, false)] : []),
      ...(downwards ? [of(key, key.table, key.refers, key.columns, true)] : []),
    ]
  })
}

export function logicSql(logic: Logic, alias: string): string {
  if (logic.kind === 'group')
    return `${logic.not ? 'not ' : ''}(${logic.terms.map((term) => logicSql(term, alias)).join(` ${logic.word} `)})`
  const { field, not, operator, value } = logic
  const column = `${alias}.${id(field)}`
  return `${not ? 'not ' : ''}(${comparisonSql(column, operator, value)})`
}

const OPERATORS: Readonly<Record<string, string>> = {
  eq: '=',
  neq: '<>',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
  cs: '@>',
  cd: '<@',
  ov: '&&',
}

function comparisonSql(column: string, operator: string, value: string | readonly string[]): string {
  if (typeof value !== 'string') {
    const texts = value.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`)
    return `${column} = any (${literal(`{${texts.join(',')}}`)})`
  }
  if (operator === 'is') {
    if (!/^(null|true|false|unknown|not_null)$/i.test(value))
      throw new Refused(400, 'PGRST100', 'failed to parse filter')
    return `${column} is ${value.replace('_', ' ')}`
  }
  if (operator === 'like' || operator === 'ilike')
    return `${column} ${operator} ${literal(value.replaceAll('*', '%'))}`
  if (operator === 'wfts') return `${column} @@ websearch_to_tsquery(${literal(value)})`
  const sign = OPERATORS[operator]
  if (sign === undefined) throw new Refused(400, 'PGRST100', `unknown single value operator ${operator}`)
  return `${column} ${sign} ${literal(value)}`
}

export const orderSql = (terms: readonly Order[], alias: string): string =>
  terms.length === 0
    ? ''
    : `order by ${terms.map(({ field, words }) => `${alias}.${id(field)} ${words}`).join(', ')}`

/** The source of a write's rows: columns from the body, with null or the default for missing ones. */
export function payloadSql(
  schema: Schema,
  table: string,
  names: readonly string[],
  body: string,
  withDefaults: boolean,
): string {
  const row = `null::${id(schema.name)}.${id(table)}`
  if (!withDefaults) return `json_populate_recordset(${row}, ${literal(body)}::json)`
  const columns = schema.tables.get(table) ?? []
  const fallbacks = columns
    .filter(({ name, fallback }) => names.includes(name) && fallback !== null)
    .map(({ name, fallback }) => `${literal(name)}, ${fallback}`)
  return `jsonb_populate_recordset(${row}, (select jsonb_agg(jsonb_build_object(${fallbacks.join(', ')}) || e) from jsonb_array_elements(${literal(body)}::jsonb) e))`
}
