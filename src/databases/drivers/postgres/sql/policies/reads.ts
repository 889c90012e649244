import type { A_Expr, FuncCall, Node, RangeVar, SQLValueFunction, SubLink, TypeCast } from 'libpg-query'
import {
  constantIn,
  nameParts,
  soleExpression,
  systemName,
} from '#databases/drivers/postgres/sql/parse-tree.ts'
import { DepthFailure, parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'
import { CLAIMS, FUNCTIONS, TYPES } from '#databases/drivers/postgres/sql/policies/expression.ts'
import type { FunctionReads } from '#databases/drivers/postgres/sql/policies/function-reads.ts'
import type { TableName } from '#databases/request/request.ts'

/** Everything that an expression reads besides the row. */
type ExpressionReads = {
  /** Members of the claims, or `all` of them. */
  readonly claims: ReadonlySet<string> | 'all'
  readonly tables: readonly TableName[]
}

/** Functions of users without arguments, by schema and name as JSON, and what they read. */
export type KnownFunctions = ReadonlyMap<string, FunctionReads>

/**
 * Everything that a policy reads, from the text that the server writes for it with the search path pg_catalog. Undefined where its result can change
 * with anything else: the time, a setting, a function that is neither of the lists here nor `known`.
 */
export async function readsOfExpression(
  text: string,
  known: KnownFunctions = new Map(),
): Promise<ExpressionReads | undefined> {
  try {
    const node = soleExpression(await parse(`select ${text}`))
    if (node === undefined) return undefined
    const reads: Found = { claims: new Set(), readsAllClaims: false, tables: [], known }
    visit(node, reads)
    return { claims: reads.readsAllClaims ? 'all' : reads.claims, tables: reads.tables }
  } catch (error) {
    if (error instanceof Unknown || error instanceof SyntaxFailure || error instanceof DepthFailure)
      return undefined
    throw error
  }
}

type Found = {
  readonly claims: Set<string>
  readsAllClaims: boolean
  readonly tables: TableName[]
  readonly known: KnownFunctions
}

/** The result depends on what cannot be known. */
class Unknown extends Error {}

/** Kinds whose result depends on their parts only. */
const PARTS = new Set([
  'A_Const', 'ColumnRef', 'A_Star', 'String', 'List', 'BoolExpr', 'NullTest', 'BooleanTest', 'CoalesceExpr', 'MinMaxExpr',
  'A_ArrayExpr', 'RowExpr', 'CaseExpr', 'CaseWhen', 'CollateClause', 'SelectStmt', 'ResTarget', 'RangeSubselect', 'JoinExpr',
]) // biome-ignore format: a list

const TELL_TIME = ['now', 'transaction_timestamp', 'statement_timestamp', 'age']
const AGGREGATES = ['count', 'sum', 'min', 'max', 'bool_and', 'bool_or', 'array_agg']
const KNOWN_FUNCTIONS: ReadonlySet<string> = FUNCTIONS.difference(new Set(TELL_TIME)).union(
  new Set(AGGREGATES),
)
/** A text may mean the time: `now`, `today`. */
const KNOWN_TYPES: ReadonlySet<string> = TYPES.difference(
  new Set(['date', 'time', 'timetz', 'timestamp', 'timestamptz']),
)
const OWN_ROLE: ReadonlySet<string> = new Set(['SVFOP_CURRENT_USER', 'SVFOP_CURRENT_ROLE', 'SVFOP_USER'])

/** Members of nodes are nodes, lists, or plain objects with further members. A node has one member, with its kind as its name. */
function visit(part: unknown, found: Found): void {
  if (Array.isArray(part)) for (const item of part) visit(item, found)
  else if (typeof part === 'object' && part !== null)
    for (const [name, content] of Object.entries(part)) {
      if (/^[A-Z]/.test(name)) visitNode(name, content, found)
      else visit(content, found)
    }
}

function visitNode(kind: string, content: unknown, found: Found): void {
  const look = LOOKS[kind]
  if (look !== undefined) look(content, found)
  else if (PARTS.has(kind)) visit(content, found)
  else throw new Unknown()
}

// The parser names each node by its kind.
const LOOKS: Readonly<Record<string, (content: unknown, found: Found) => void>> = {
  A_Expr: (content, found) => visitOperator(content as A_Expr, found),
  FuncCall: (content, found) => visitCall(content as FuncCall, found),
  TypeCast: (content, found) => visitCast(content as TypeCast, found),
  SubLink(content, found) {
    const { operName } = content as SubLink
    if (operName !== undefined && systemName(operName) === undefined) throw new Unknown()
    visit(content, found)
  },
  SQLValueFunction(content) {
    if (!OWN_ROLE.has((content as SQLValueFunction).op ?? '')) throw new Unknown()
  },
  RangeVar(content, found) {
    const { schemaname, relname } = content as RangeVar
    // Without a schema it is of the system, or a subquery with a name.
    if (schemaname === undefined || relname === undefined) throw new Unknown()
    found.tables.push({ schema: schemaname, table: relname })
  },
}

function visitOperator({ name, lexpr, rexpr }: A_Expr, found: Found): void {
  const operator = systemName(name)
  if (operator === undefined) throw new Unknown()
  const member = operator === '->>' || operator === '->' ? rexpr && constantIn(rexpr)?.sval?.sval : undefined
  if (member !== undefined && lexpr !== undefined && isClaims(lexpr)) found.claims.add(member)
  else visit([lexpr, rexpr], found)
}

/** `current_setting('request.claims', …)`, also as JSON and without an empty text. */
export function isClaims(node: Node): boolean {
  if ('TypeCast' in node) {
    const { arg, typeName } = node.TypeCast
    return arg !== undefined && ['json', 'jsonb'].includes(systemName(typeName?.names) ?? '') && isClaims(arg)
  }
  if ('A_Expr' in node) {
    const { kind, lexpr, rexpr } = node.A_Expr
    return (
      kind === 'AEXPR_NULLIF' &&
      rexpr !== undefined &&
      constantIn(rexpr) !== undefined &&
      lexpr !== undefined &&
      isClaims(lexpr)
    )
  }
  return 'FuncCall' in node && settingIn(node.FuncCall) === CLAIMS
}

function settingIn({ funcname, args = [] }: FuncCall): string | undefined {
  const [setting] = args
  return systemName(funcname) === 'current_setting' && setting !== undefined
    ? constantIn(setting)?.sval?.sval
    : undefined
}

function visitCall(call: FuncCall, found: Found): void {
  const setting = settingIn(call)
  if (setting === CLAIMS || setting === 'request.jwt.claims') {
    found.readsAllClaims = true
    return
  }
  const { funcname, ...rest } = call
  const own = call.args === undefined ? found.known.get(JSON.stringify(nameParts(funcname))) : undefined
  if (own !== undefined) {
    if (own === 'all') found.readsAllClaims = true
    else for (const claim of own) found.claims.add(claim)
    return
  }
  if (!KNOWN_FUNCTIONS.has(systemName(funcname) ?? '')) throw new Unknown()
  visit(rest, found)
}

function visitCast(cast: TypeCast, found: Found): void {
  const { arg, typeName } = cast
  // The server has read a constant when the policy was made.
  if (arg !== undefined && 'A_Const' in arg) return
  if (!KNOWN_TYPES.has(systemName(typeName?.names) ?? '')) throw new Unknown()
  visit(arg, found)
}
