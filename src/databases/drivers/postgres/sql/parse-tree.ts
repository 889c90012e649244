import type { A_Const, Node, ParseResult } from 'libpg-query'

/** `select x` and nothing else: no second statement, no FROM, no alias. */
export function soleExpression(result: ParseResult): Node | undefined {
  const [only, ...others] = result.stmts ?? []
  if (!only?.stmt || others.length > 0 || !('SelectStmt' in only.stmt)) return undefined
  const { targetList = [], limitOption, op, ...rest } = only.stmt.SelectStmt
  if (
    Object.keys(rest).length > 0 ||
    targetList.length !== 1 ||
    limitOption !== 'LIMIT_OPTION_DEFAULT' ||
    op !== 'SETOP_NONE'
  )
    return undefined
  const [target] = targetList
  if (!target || !('ResTarget' in target) || target.ResTarget.name !== undefined) return undefined
  return target.ResTarget.val
}

/** The parser omits values that are zero, empty or false. */
export function constantText(constant: A_Const): string | undefined {
  if (constant.isnull) return 'null'
  if (constant.boolval) return constant.boolval.boolval ? 'true' : 'false'
  if (constant.ival) return String(constant.ival.ival ?? 0)
  if (constant.fval)
    return /^-?[\d.]+(?:[eE][+-]?\d+)?$/.test(constant.fval.fval ?? '') ? constant.fval.fval : undefined
  if (constant.sval) return literal(constant.sval.sval ?? '')
  return undefined
}

/** A constant, also with its type, as the server writes it. */
export function constantIn(node: Node): A_Const | undefined {
  if ('A_Const' in node) return node.A_Const
  const { arg } = 'TypeCast' in node ? node.TypeCast : {}
  return arg && 'A_Const' in arg ? arg.A_Const : undefined
}

/** standard_conforming_strings is on in every connection, so only the quote needs escaping. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** The parts of a name. A part that is no text, as `*`, is left out. */
export const nameParts = (nodes: readonly Node[] = []): string[] =>
  nodes.flatMap((node) => ('String' in node ? [node.String.sval ?? ''] : []))

/** The name without its schema, if it is unqualified or of pg_catalog. */
export function systemName(nodes?: readonly Node[]): string | undefined {
  const [first, second, ...others] = nameParts(nodes)
  if (second === undefined) return first
  return first === 'pg_catalog' && others.length === 0 ? second : undefined
}
