import type { JoinExpr, Node, RangeVar } from 'libpg-query'
import { requireUnreserved } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { namesText, type Writer } from '#databases/drivers/postgres/sql/policies/writer.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'

/** Tables of the client and joins of them. */
export function fromText(item: Node, writer: Writer, depth: number): string {
  if ('RangeVar' in item) return tableText(item.RangeVar, writer)
  if ('JoinExpr' in item) return joinText(item.JoinExpr, writer, depth)
  throw writer.refuse('A subquery reads tables of the client only')
}

function tableText(
  { catalogname, schemaname = 'public', relname = '', inh, alias }: RangeVar,
  writer: Writer,
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

function joinText(join: JoinExpr, writer: Writer, depth: number): string {
  const { jointype = '', larg, rarg, quals, usingClause = [], isNatural, alias, join_using_alias } = join
  const word = JOINS[jointype]
  if (!larg || !rarg || word === undefined || isNatural || alias || join_using_alias)
    throw writer.refuse('This form of a join is not allowed in a policy')
  if (depth > MAX_JOINS) throw writer.refuse('Too many joins')
  const [left, right] = [fromText(larg, writer, depth + 1), fromText(rarg, writer, depth + 1)]
  const columns = usingClause.map((column) => namesText([column], 1, writer.refuse))
  const on =
    quals === undefined ? `using (${columns.join(', ')})` : `on ${writer.expression(quals, depth + 1)}`
  if (quals === undefined && columns.length === 0) return `(${left} cross join ${right})`
  return `(${left} ${word} ${right} ${on})`
}

const MAX_JOINS = 40
