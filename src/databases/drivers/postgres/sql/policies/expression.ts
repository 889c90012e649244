import type { A_Expr, CaseExpr, FuncCall, Node, TypeCast } from 'libpg-query'
import {
  constantIn,
  constantText,
  nameParts,
  soleExpression,
  systemName,
} from '#databases/drivers/postgres/sql/parse-tree.ts'
import { DepthFailure, parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'
import { subqueryText } from '#databases/drivers/postgres/sql/policies/subquery.ts'
import {
  type ExpressionScope,
  type ExpressionWriter,
  listText,
  namesText,
  operatorText,
  type Refuse,
} from '#databases/drivers/postgres/sql/policies/writer.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'

/** Characters. */
const MAX_EXPRESSION = 5_000
const MAX_DEPTH = 40

/** Functions of the system that a policy may call: they compute a value from their arguments or tell the time. */
export const FUNCTIONS: ReadonlySet<string> = new Set([
  'lower', 'upper', 'btrim', 'ltrim', 'rtrim', 'length', 'concat',
  'left', 'right', 'starts_with', 'split_part',
  'abs', 'round', 'floor', 'ceil', 'mod',
  'now', 'transaction_timestamp', 'statement_timestamp',
  'date_trunc', 'date_part', 'extract', 'timezone', 'age',
  'array_length', 'cardinality', 'array_position', 'json_array_length', 'jsonb_array_length',
  'json_extract_path_text', 'jsonb_extract_path_text', 'jsonb_exists',
]) // biome-ignore format: a list

/** Types of the system that a cast may name. None of them names an object of the database, as `regclass` does. */
export const TYPES: ReadonlySet<string> = new Set([
  'text', 'varchar', 'bpchar', 'uuid', 'bool', 'int2', 'int4', 'int8', 'numeric', 'float4', 'float8',
  'date', 'time', 'timetz', 'timestamp', 'timestamptz', 'interval', 'json', 'jsonb', 'inet', 'cidr',
]) // biome-ignore format: a list

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
  return createWriter(scope, refuse).expression(node)
}

const refusalOf =
  (field: string): Refuse =>
  (hint) =>
    fail('invalid_policy', { hint, details: { field } })

function createWriter(scope: ExpressionScope, refuse: Refuse): ExpressionWriter {
  let depth = 0
  const writer: ExpressionWriter = {
    scope,
    refuse,
    expression(node) {
      writer.requireDepth('The expression is nested too deep')
      const [kind = '', content] = Object.entries(node ?? {})[0] ?? []
      // The parser names each node by its kind.
      const write = WRITERS[kind as Kind] as
        | ((content: unknown, writer: ExpressionWriter) => string)
        | undefined
      if (write === undefined) throw refuse(`${kind || 'An empty expression'} is not allowed in a policy`)
      return writer.nested(() => write(content, writer))
    },
    operand: (node) => `(${writer.expression(node)})`,
    nested(write) {
      depth++
      const text = write()
      depth--
      return text
    },
    requireDepth(hint) {
      if (depth > MAX_DEPTH) throw refuse(hint)
    },
  }
  return writer
}

type Kind = Node extends infer N ? (N extends unknown ? keyof N : never) : never
type Content<K extends Kind> = Extract<Node, { readonly [k in K]: unknown }>[K]

/** The kinds of nodes that a policy may have. */
const WRITERS: { readonly [K in Kind]?: (content: Content<K>, writer: ExpressionWriter) => string } = {
  A_Const(constant, { refuse }) {
    const text = constantText(constant)
    if (text === undefined) throw refuse('This constant is not allowed')
    return text
  },
  ColumnRef: ({ fields = [] }, { refuse }) => namesText(fields, 3, refuse),
  A_Expr: comparisonText,
  BoolExpr({ boolop, args = [] }, { operand }) {
    const texts = args.map((arg) => operand(arg))
    return boolop === 'NOT_EXPR' ? `not ${texts[0]}` : texts.join(boolop === 'AND_EXPR' ? ' and ' : ' or ')
  },
  NullTest: ({ arg, nulltesttype }, { operand }) =>
    `${operand(arg)} is ${nulltesttype === 'IS_NULL' ? 'null' : 'not null'}`,
  BooleanTest: ({ arg, booltesttype = '' }, { operand }) =>
    `${operand(arg)} ${booltesttype.replaceAll('_', ' ').toLowerCase()}`,
  TypeCast: castText,
  FuncCall: callText,
  CoalesceExpr: ({ args }, writer) => `coalesce(${listText(args, writer)})`,
  MinMaxExpr: ({ op, args }, writer) =>
    `${op === 'IS_GREATEST' ? 'greatest' : 'least'}(${listText(args, writer)})`,
  A_ArrayExpr: ({ elements }, writer) => `array[${listText(elements, writer)}]`,
  CaseExpr: caseText,
  SubLink: subqueryText,
  SQLValueFunction({ op }, { refuse }) {
    if (op !== 'SVFOP_CURRENT_TIMESTAMP' && op !== 'SVFOP_CURRENT_DATE')
      throw refuse('Of these, only current_timestamp and current_date are allowed')
    return op === 'SVFOP_CURRENT_DATE' ? 'current_date' : 'current_timestamp'
  },
}

function comparisonText({ kind, name, lexpr, rexpr }: A_Expr, writer: ExpressionWriter): string {
  const left = () => writer.operand(lexpr)
  const right = () => writer.operand(rexpr)
  const items = () => (rexpr && 'List' in rexpr ? (rexpr.List.items ?? []) : []).map(writer.operand)
  const not = () => (nameParts(name)[0]?.startsWith('!') ? 'not ' : '')
  switch (kind) {
    case 'AEXPR_OP':
      return `${lexpr === undefined ? '' : `${left()} `}${operatorText(name, writer)} ${right()}`
    case 'AEXPR_OP_ANY':
      return `${left()} ${operatorText(name, writer)} any ${right()}`
    case 'AEXPR_OP_ALL':
      return `${left()} ${operatorText(name, writer)} all ${right()}`
    case 'AEXPR_DISTINCT':
      return `${left()} is distinct from ${right()}`
    case 'AEXPR_NOT_DISTINCT':
      return `${left()} is not distinct from ${right()}`
    case 'AEXPR_NULLIF':
      return `nullif(${left()}, ${right()})`
    case 'AEXPR_IN':
      return `${left()} ${nameParts(name)[0] === '=' ? '' : 'not '}in (${items().join(', ')})`
    case 'AEXPR_LIKE':
      return `${left()} ${not()}like ${right()}`
    case 'AEXPR_ILIKE':
      return `${left()} ${not()}ilike ${right()}`
    case 'AEXPR_BETWEEN':
      return `${left()} between ${items().join(' and ')}`
    case 'AEXPR_NOT_BETWEEN':
      return `${left()} not between ${items().join(' and ')}`
    default:
      throw writer.refuse(`${kind} is not allowed in a policy`)
  }
}

function castText({ arg, typeName }: TypeCast, writer: ExpressionWriter): string {
  const { names, setof, pct_type, arrayBounds = [], typmods = [] } = typeName ?? {}
  const type = systemName(names)
  if (type === undefined || setof || pct_type || typmods.length > 0 || !TYPES.has(type))
    throw writer.refuse(`A cast to ${nameParts(names).join('.').slice(0, 100)} is not allowed in a policy`)
  return `${writer.operand(arg)}::pg_catalog.${quoteName(type)}${arrayBounds.length > 0 ? '[]' : ''}`
}

export const CLAIMS = 'request.claims'

/** auth.uid() and the like, which policies of Supabase use. */
const OF_SUPABASE = `: the user is (current_setting('${CLAIMS}')::json ->> 'user_id')::uuid`

function callText(call: FuncCall, writer: ExpressionWriter): string {
  const { funcname, args = [], funcformat: _format, location: _place, ...rest } = call
  const name = systemName(funcname)
  if (name === 'current_setting') return claimsText(args, writer)
  if (name !== undefined && FUNCTIONS.has(name) && Object.keys(rest).length === 0)
    return `pg_catalog.${quoteName(name)}(${listText(args, writer)})`
  const parts = nameParts(funcname)
  throw writer.refuse(
    `The function ${parts.join('.').slice(0, 100)} is not allowed in a policy${parts[0] === 'auth' ? OF_SUPABASE : ''}`,
  )
}

/** The only setting that a policy may read. */
function claimsText(args: readonly Node[], { refuse }: ExpressionWriter): string {
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

function caseText(
  { arg, args = [], defresult }: CaseExpr,
  { expression, operand, refuse }: ExpressionWriter,
): string {
  const whens = args.map((when) => {
    if (!('CaseWhen' in when)) throw refuse('This case is not allowed')
    const { expr, result } = when.CaseWhen
    return ` when ${expression(expr)} then ${expression(result)}`
  })
  const subject = arg === undefined ? '' : ` ${operand(arg)}`
  const otherwise = defresult === undefined ? '' : ` else ${expression(defresult)}`
  return `case${subject}${whens.join('')}${otherwise} end`
}
