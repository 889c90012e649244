import type { A_Const, A_Expr, CaseExpr, FuncCall, Node, SelectStmt, SubLink, TypeCast } from 'libpg-query'
import { constantText, soleExpression } from '#databases/drivers/postgres/sql/defaults.ts'
import { DepthFailure, parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'
import { fromText } from '#databases/drivers/postgres/sql/policies/from-clause.ts'
import {
  type ExpressionScope,
  namesText,
  type Refuse,
  type Writer,
} from '#databases/drivers/postgres/sql/policies/writer.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'

/** Characters. */
const MAX_EXPRESSION = 5_000
const MAX_DEPTH = 40

/** Functions of the system that a policy may call: they compute a value from their arguments or tell the time. */
const ALLOWED_POLICY_FUNCTIONS = [
  ...[
    'lower',
    'upper',
    'btrim',
    'ltrim',
    'rtrim',
    'length',
    'concat',
    'left',
    'right',
    'starts_with',
    'split_part',
  ],
  ...['abs', 'round', 'floor', 'ceil', 'mod'],
  ...[
    'now',
    'transaction_timestamp',
    'statement_timestamp',
    'date_trunc',
    'date_part',
    'extract',
    'timezone',
    'age',
  ],
  ...['array_length', 'cardinality', 'array_position', 'json_array_length', 'jsonb_array_length'],
  ...['json_extract_path_text', 'jsonb_extract_path_text', 'jsonb_exists'],
] as const

const FUNCTIONS: ReadonlySet<string> = new Set(ALLOWED_POLICY_FUNCTIONS)

const OPERATORS: ReadonlySet<string> = new Set([
  ...['=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '%', '||'],
  ...['->', '->>', '#>', '#>>', '@>', '<@', '&&', '?', '?|', '?&'],
  // As the server writes like, not like, ilike and not ilike.
  ...['~~', '!~~', '~~*', '!~~*'],
])

/** Types of the system that a cast may name. None of them names an object of the database, as `regclass` does. */
const TYPES: ReadonlySet<string> = new Set([
  ...['text', 'varchar', 'bpchar', 'uuid', 'bool', 'int2', 'int4', 'int8', 'numeric', 'float4', 'float8'],
  ...['date', 'time', 'timetz', 'timestamp', 'timestamptz', 'interval', 'json', 'jsonb', 'inet', 'cidr'],
])

/**
 * The expression of a policy (gateway.md 10), parsed by PostgreSQL's own grammar and written anew from the tree, so no text of the request
 * reaches the statement. Allowed are constants, columns, operators and functions of the lists above, the claims of the session, and
 * subqueries on tables of the client.
 */
export async function policyExpression(text: string, scope: ExpressionScope): Promise<string> {
  const refuse = refusalOf(scope.field)
  if (text.includes('\0') || text.length > MAX_EXPRESSION)
    throw refuse(`An expression has at most ${MAX_EXPRESSION} characters, and none of them is NUL`)
  const tree = await parse(`select ${text}`).catch((error: unknown) => {
    if (error instanceof SyntaxFailure) throw refuse(error.message)
    if (error instanceof DepthFailure) throw refuse('The expression is nested too deep')
    throw error
  })
  const node = soleExpression(tree)
  if (node === undefined) throw refuse('This is not one expression')
  return writerIn(scope, refuse).expression(node, 0)
}

const refusalOf =
  (field: string): Refuse =>
  (hint) =>
    fail('invalid_policy', { hint, details: { field } })

function writerIn(scope: ExpressionScope, refuse: Refuse): Writer {
  const writer: Writer = {
    scope,
    refuse,
    expression(node, depth) {
      if (depth > MAX_DEPTH) throw refuse('The expression is nested too deep')
      const [kind = '', content] = Object.entries(node ?? {})[0] ?? []
      const write = WRITERS[kind]
      if (write === undefined) throw refuse(`${kind || 'An empty expression'} is not allowed in a policy`)
      // The parser names each node by its kind.
      return write(content as never, writer, depth + 1)
    },
    select(node, depth) {
      if (!node || !('SelectStmt' in node)) throw refuse('A subquery is one select')
      return selectText(node.SelectStmt, writer, depth)
    },
  }
  return writer
}

/** By the kind of a node. Every operand is in parentheses, so precedence does not matter. */
const WRITERS: Readonly<Record<string, (node: never, writer: Writer, depth: number) => string>> = {
  A_Const: (node: Parameters<typeof constantText>[0], { refuse }: Writer) => {
    const text = constantText(node)
    if (text === undefined) throw refuse('This constant is not allowed')
    return text
  },
  ColumnRef: ({ fields = [] }: { fields?: Node[] }, { refuse }: Writer) => namesText(fields, 3, refuse),
  A_Expr: operatorText,
  BoolExpr: ({ boolop, args = [] }: { boolop?: string; args?: Node[] }, writer: Writer, depth: number) => {
    const texts = args.map((arg) => `(${writer.expression(arg, depth)})`)
    return boolop === 'NOT_EXPR' ? `not ${texts[0]}` : texts.join(boolop === 'AND_EXPR' ? ' and ' : ' or ')
  },
  NullTest: ({ arg, nulltesttype }: { arg?: Node; nulltesttype?: string }, writer: Writer, depth: number) =>
    `(${writer.expression(arg, depth)}) is ${nulltesttype === 'IS_NULL' ? 'null' : 'not null'}`,
  BooleanTest: (
    { arg, booltesttype = '' }: { arg?: Node; booltesttype?: string },
    writer: Writer,
    depth: number,
  ) => `(${writer.expression(arg, depth)}) ${booltesttype.replaceAll('_', ' ').toLowerCase()}`,
  TypeCast: castText,
  FuncCall: callText,
  CoalesceExpr: ({ args = [] }: { args?: Node[] }, writer: Writer, depth: number) =>
    `coalesce(${listText(args, writer, depth)})`,
  MinMaxExpr: ({ op, args = [] }: { op?: string; args?: Node[] }, writer: Writer, depth: number) =>
    `${op === 'IS_GREATEST' ? 'greatest' : 'least'}(${listText(args, writer, depth)})`,
  A_ArrayExpr: ({ elements = [] }: { elements?: Node[] }, writer: Writer, depth: number) =>
    `array[${listText(elements, writer, depth)}]`,
  CaseExpr: caseText,
  SubLink: subqueryText,
  SQLValueFunction: ({ op = '' }: { op?: string }, { refuse }: Writer) => {
    if (op !== 'SVFOP_CURRENT_TIMESTAMP' && op !== 'SVFOP_CURRENT_DATE')
      throw refuse('Of these, only current_timestamp and current_date are allowed')
    return op === 'SVFOP_CURRENT_DATE' ? 'current_date' : 'current_timestamp'
  },
}

const listText = (nodes: readonly Node[], writer: Writer, depth: number): string =>
  nodes.map((node) => writer.expression(node, depth)).join(', ')

/** An operator without a schema, from the list. */
function soleOperator(name: readonly Node[] = [], { refuse }: Writer): string {
  const [only, ...others] = name.flatMap((part) => ('String' in part ? [part.String.sval ?? ''] : []))
  if (only === undefined || others.length > 0) throw refuse('An operator is named without its schema')
  if (!OPERATORS.has(only)) throw refuse(`The operator ${only} is not allowed in a policy`)
  return only
}

function operatorText({ kind, name, lexpr, rexpr }: A_Expr, writer: Writer, depth: number): string {
  const left = () => `(${writer.expression(lexpr, depth)})`
  const right = () => `(${writer.expression(rexpr, depth)})`
  const list = () => {
    const items = rexpr && 'List' in rexpr ? (rexpr.List.items ?? []) : []
    return items.map((item) => `(${writer.expression(item, depth)})`)
  }
  const word = name?.flatMap((part) => ('String' in part ? [part.String.sval ?? ''] : [])).join('.') ?? ''
  switch (kind) {
    case 'AEXPR_OP':
      return lexpr === undefined
        ? `${soleOperator(name, writer)} ${right()}`
        : `${left()} ${soleOperator(name, writer)} ${right()}`
    case 'AEXPR_OP_ANY':
      return `${left()} ${soleOperator(name, writer)} any ${right()}`
    case 'AEXPR_OP_ALL':
      return `${left()} ${soleOperator(name, writer)} all ${right()}`
    case 'AEXPR_DISTINCT':
      return `${left()} is distinct from ${right()}`
    case 'AEXPR_NOT_DISTINCT':
      return `${left()} is not distinct from ${right()}`
    case 'AEXPR_NULLIF':
      return `nullif(${left()}, ${right()})`
    case 'AEXPR_IN':
      return `${left()} ${word === '=' ? 'in' : 'not in'} (${list().join(', ')})`
    case 'AEXPR_LIKE':
      return `${left()} ${word === '~~' ? 'like' : 'not like'} ${right()}`
    case 'AEXPR_ILIKE':
      return `${left()} ${word === '~~*' ? 'ilike' : 'not ilike'} ${right()}`
    case 'AEXPR_BETWEEN':
    case 'AEXPR_NOT_BETWEEN':
      return `${left()} ${kind === 'AEXPR_BETWEEN' ? 'between' : 'not between'} ${list().join(' and ')}`
    default:
      throw writer.refuse(`${kind} is not allowed in a policy`)
  }
}

function castText({ arg, typeName }: TypeCast, writer: Writer, depth: number): string {
  const { names = [], setof, pct_type, arrayBounds = [], typmods = [] } = typeName ?? {}
  const parts = names.flatMap((part) => ('String' in part ? [part.String.sval ?? ''] : []))
  const type = parts.at(-1) ?? ''
  const isSystem = parts.length === 1 || (parts.length === 2 && parts[0] === 'pg_catalog')
  if (!isSystem || setof || pct_type || typmods.length > 0 || !TYPES.has(type))
    throw writer.refuse(`A cast to ${parts.join('.').slice(0, 100)} is not allowed in a policy`)
  return `(${writer.expression(arg, depth)})::pg_catalog.${quoteName(type)}${arrayBounds.length > 0 ? '[]' : ''}`
}

const CLAIMS = 'request.claims'

/** auth.uid() and the like, which policies of Supabase use. */
const OF_SUPABASE = `: the user is (current_setting('${CLAIMS}')::json ->> 'user_id')::uuid`

function callText(call: FuncCall, writer: Writer, depth: number): string {
  const { funcname = [], args = [], funcformat: _format, location: _place, ...rest } = call
  const parts = funcname.flatMap((part) => ('String' in part ? [part.String.sval ?? ''] : []))
  const name = parts.at(-1) ?? ''
  const isSystem = parts.length === 1 || (parts.length === 2 && parts[0] === 'pg_catalog')
  if (isSystem && name === 'current_setting') return claimsText(args, writer)
  if (!isSystem || !FUNCTIONS.has(name) || Object.keys(rest).length > 0)
    throw writer.refuse(
      `The function ${parts.join('.').slice(0, 100)} is not allowed in a policy${parts[0] === 'auth' ? OF_SUPABASE : ''}`,
    )
  return `pg_catalog.${quoteName(name)}(${listText(args, writer, depth)})`
}

/** The only setting that a policy may read. */
function claimsText(args: readonly Node[], { refuse }: Writer): string {
  const [setting, missingOk, ...others] = args.map(constantIn)
  if (
    setting?.sval?.sval !== CLAIMS ||
    others.length > 0 ||
    (args.length === 2 && missingOk?.boolval === undefined)
  )
    throw refuse(`The only setting that a policy may read is ${CLAIMS}`)
  // Outside of the gateway there are no claims.
  return `pg_catalog.current_setting('${CLAIMS}', true)`
}

/** A constant, also with its type, as the server writes it. */
function constantIn(node: Node): A_Const | undefined {
  if ('A_Const' in node) return node.A_Const
  const { arg } = 'TypeCast' in node ? node.TypeCast : {}
  return arg && 'A_Const' in arg ? arg.A_Const : undefined
}

function caseText({ arg, args = [], defresult }: CaseExpr, writer: Writer, depth: number): string {
  const whens = args.map((when) => {
    if (!('CaseWhen' in when)) throw writer.refuse('This case is not allowed')
    const { expr, result } = when.CaseWhen
    return `when ${writer.expression(expr, depth)} then ${writer.expression(result, depth)}`
  })
  const parts = [
    'case',
    ...(arg === undefined ? [] : [`(${writer.expression(arg, depth)})`]),
    ...whens,
    ...(defresult === undefined ? [] : [`else ${writer.expression(defresult, depth)}`]),
    'end',
  ]
  return parts.join(' ')
}

function subqueryText(
  { subLinkType, testexpr, operName, subselect }: SubLink,
  writer: Writer,
  depth: number,
): string {
  const select = `(${writer.select(subselect, depth)})`
  if (subLinkType === 'EXISTS_SUBLINK') return `exists ${select}`
  if (subLinkType === 'EXPR_SUBLINK') return select
  if (subLinkType === 'ARRAY_SUBLINK') return `array${select}`
  if (subLinkType !== 'ANY_SUBLINK' || testexpr === undefined)
    throw writer.refuse('This form of a subquery is not allowed in a policy')
  const operator = operName === undefined ? '=' : soleOperator(operName, writer)
  return `(${writer.expression(testexpr, depth)}) ${operator} any ${select}`
}

function selectText(select: SelectStmt, writer: Writer, depth: number): string {
  const { targetList = [], fromClause = [], whereClause, limitOption, op, ...rest } = select
  if (Object.keys(rest).length > 0 || limitOption !== 'LIMIT_OPTION_DEFAULT' || op !== 'SETOP_NONE')
    throw writer.refuse('A subquery is select … [from …] [where …]')
  const targets = targetList.map((target) => {
    if (!('ResTarget' in target) || target.ResTarget.indirection)
      throw writer.refuse('A subquery returns expressions')
    if (isStar(target.ResTarget.val)) return '*'
    return writer.expression(target.ResTarget.val, depth)
  })
  const from = fromClause.map((item) => fromText(item, writer, depth + 1))
  return [
    `select ${targets.join(', ')}`,
    ...(from.length === 0 ? [] : [`from ${from.join(', ')}`]),
    ...(whereClause === undefined ? [] : [`where ${writer.expression(whereClause, depth)}`]),
  ].join(' ')
}

const isStar = (node: Node | undefined): boolean => {
  const [field, ...others] = node && 'ColumnRef' in node ? (node.ColumnRef.fields ?? []) : []
  return field !== undefined && others.length === 0 && 'A_Star' in field
}
