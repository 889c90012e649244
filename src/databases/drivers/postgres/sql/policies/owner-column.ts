import type { Node } from 'libpg-query'
import type { OwnerColumn } from '#databases/drivers/changes.ts'
import {
  constantIn,
  nameParts,
  soleExpression,
  systemName,
} from '#databases/drivers/postgres/sql/parse-tree.ts'
import { DepthFailure, parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'
import { isClaims } from '#databases/drivers/postgres/sql/policies/reads.ts'

/** The column and the claim of a policy that says no more than that they are the same uuid, as the presets do. */
export async function ownerColumnOf(text: string): Promise<OwnerColumn | undefined> {
  try {
    const node = soleExpression(await parse(`select ${text}`))
    return node === undefined ? undefined : equalityIn(node)
  } catch (error) {
    if (error instanceof SyntaxFailure || error instanceof DepthFailure) return undefined
    throw error
  }
}

function equalityIn(node: Node): OwnerColumn | undefined {
  if (!('A_Expr' in node)) return undefined
  const { kind, name, lexpr, rexpr } = node.A_Expr
  if (kind !== 'AEXPR_OP' || systemName(name) !== '=' || lexpr === undefined || rexpr === undefined)
    return undefined
  return pairOf(lexpr, rexpr) ?? pairOf(rexpr, lexpr)
}

function pairOf(left: Node, right: Node): OwnerColumn | undefined {
  const [column, claim] = ['ColumnRef' in left ? nameParts(left.ColumnRef.fields) : [], claimIn(right)]
  const [name, ...others] = column
  return name === undefined || others.length > 0 || claim === undefined ? undefined : { column: name, claim }
}

/** `(claims ->> 'user_id')::uuid`, also in a subquery, where it is computed once a statement. */
function claimIn(node: Node): string | undefined {
  if ('SubLink' in node) {
    const { subLinkType, subselect } = node.SubLink
    const inner = subLinkType === 'EXPR_SUBLINK' && subselect !== undefined ? selected(subselect) : undefined
    return inner && claimIn(inner)
  }
  if (!('TypeCast' in node)) return undefined
  const { arg, typeName } = node.TypeCast
  if (systemName(typeName?.names) !== 'uuid' || typeName?.arrayBounds !== undefined) return undefined
  if (arg === undefined || !('A_Expr' in arg)) return undefined
  const { kind, name, lexpr, rexpr } = arg.A_Expr
  if (kind !== 'AEXPR_OP' || systemName(name) !== '->>' || lexpr === undefined || rexpr === undefined)
    return undefined
  return isClaims(lexpr) ? constantIn(rexpr)?.sval?.sval : undefined
}

/** The value of `select value` without anything else. */
function selected(node: Node): Node | undefined {
  if (!('SelectStmt' in node)) return undefined
  const { targetList = [], limitOption: _limit, op, ...rest } = node.SelectStmt
  const [target] = targetList
  const isSole = targetList.length === 1 && op === 'SETOP_NONE' && Object.keys(rest).length === 0
  return isSole && target !== undefined && 'ResTarget' in target ? target.ResTarget.val : undefined
}
