import type { JoinExpr, Node, RangeVar, SelectStmt, SubLink } from 'libpg-query'
import { requireUnreserved } from '#databases/drivers/postgres/sql/ddl/names.ts'
import {
  type ExpressionWriter,
  namesText,
  operatorText,
} from '#databases/drivers/postgres/sql/policies/writer.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'

export function subqueryText(
  { subLinkType, testexpr, operName, subselect }: SubLink,
  writer: ExpressionWriter,
): string {
  if (!subselect || !('SelectStmt' in subselect)) throw writer.refuse('A subquery is one select')
  const select = `(${selectText(subselect.SelectStmt, writer)})`
  if (subLinkType === 'EXISTS_SUBLINK') return `exists ${select}`
  if (subLinkType === 'EXPR_SUBLINK') return select
  if (subLinkType === 'ARRAY_SUBLINK') return `array${select}`
  if (subLinkType !== 'ANY_SUBLINK' || testexpr === undefined)
    throw writer.refuse('This form of a subquery is not allowed in a policy')
  const operator = operName === undefined ? '=' : operatorText(operName, writer)
  return `${writer.operand(testexpr)} ${operator} any ${select}`
}

function selectText(select: SelectStmt, writer: ExpressionWriter): string {
  const { targetList = [], fromClause = [], whereClause, limitOption, op, ...rest } = select
  if (Object.keys(rest).length > 0 || limitOption !== 'LIMIT_OPTION_DEFAULT' || op !== 'SETOP_NONE')
    throw writer.refuse('A subquery is select … [from …] [where …]')
  const targets = targetList.map((target) => {
    if (!('ResTarget' in target) || target.ResTarget.indirection)
      throw writer.refuse('A subquery returns expressions')
    return isStar(target.ResTarget.val) ? '*' : writer.expression(target.ResTarget.val)
  })
  const from = fromClause.map((item) => writer.nested(() => fromText(item, writer)))
  return [
    `select ${targets.join(', ')}`,
    ...(from.length === 0 ? [] : [`from ${from.join(', ')}`]),
    ...(whereClause === undefined ? [] : [`where ${writer.expression(whereClause)}`]),
  ].join(' ')
}

const isStar = (node: Node | undefined): boolean => {
  const [field, ...others] = node && 'ColumnRef' in node ? (node.ColumnRef.fields ?? []) : []
  return field !== undefined && others.length === 0 && 'A_Star' in field
}

/** Tables of the client and joins of them. */
function fromText(item: Node, writer: ExpressionWriter): string {
  if ('RangeVar' in item) return tableText(item.RangeVar, writer)
  if ('JoinExpr' in item) return joinText(item.JoinExpr, writer)
  throw writer.refuse('A subquery reads tables of the client only')
}

function tableText(
  { catalogname, schemaname = 'public', relname = '', inh, alias }: RangeVar,
  writer: ExpressionWriter,
): string {
  const { scope, refuse } = writer
  requireUnreserved(schemaname, relname)
  const found = catalogname === undefined ? scope.catalogue.find(schemaname, relname) : undefined
  if (found === undefined)
    throw refuse(`There is no table ${schemaname}.${relname} for a subquery`.slice(0, 200))
  if (found.schema === scope.table.schema && found.name === scope.table.name)
    throw refuse('A policy cannot read its own table: the check would never end')
  const { aliasname = relname, colnames } = alias ?? {}
  if (inh !== true) throw refuse('A subquery reads whole tables, not only one')
  if (colnames !== undefined) throw refuse('An alias of a table does not name columns')
  return `${quoteName(found.schema)}.${quoteName(found.name)} as ${quoteName(aliasname)}`
}

const JOINS: Readonly<Record<string, string>> = {
  JOIN_INNER: 'join',
  JOIN_LEFT: 'left join',
  JOIN_RIGHT: 'right join',
  JOIN_FULL: 'full join',
}

function joinText(join: JoinExpr, writer: ExpressionWriter): string {
  const { jointype = '', larg, rarg, quals, usingClause = [], isNatural, alias, join_using_alias } = join
  const word = JOINS[jointype]
  if (!larg || !rarg || word === undefined || isNatural || alias || join_using_alias)
    throw writer.refuse('This form of a join is not allowed in a policy')
  writer.requireDepth('Too many joins')
  return writer.nested(() => {
    const [left, right] = [fromText(larg, writer), fromText(rarg, writer)]
    const columns = usingClause.map((column) => namesText([column], 1, writer.refuse))
    if (quals === undefined && columns.length === 0) return `(${left} cross join ${right})`
    const on = quals === undefined ? `using (${columns.join(', ')})` : `on ${writer.expression(quals)}`
    return `(${left} ${word} ${right} ${on})`
  })
}
