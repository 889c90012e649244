import type { Node, TypeName } from 'libpg-query'
import { nameParts } from '#databases/drivers/postgres/sql/parse-tree.ts'
import { DepthFailure, parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'

/** The type that a text names, written anew from PostgreSQL's own parse of it. Length and precision are left out. */
export async function typeNamed(text: string, field: string): Promise<string> {
  const refuse = () =>
    fail('invalid_data_type', {
      message: `${text.slice(0, 100)} is not a type`,
      details: { field, data_type: text.slice(0, 100) },
    })
  if (text.includes('\0') || text.length > 200) throw refuse()
  try {
    const typeName = castIn((await parse(`select null::${text}`)).stmts?.map(({ stmt }) => stmt))
    const found = typeName && typeText(typeName)
    if (found !== undefined) return found
  } catch (error) {
    if (!(error instanceof SyntaxFailure || error instanceof DepthFailure)) throw error
  }
  throw refuse()
}

/** `select null::type` and nothing else. */
function castIn([only, ...others]: readonly (Node | undefined)[] = []): TypeName | undefined {
  if (only === undefined || others.length > 0 || !('SelectStmt' in only)) return undefined
  const { targetList = [], limitOption: _limit, op: _op, ...rest } = only.SelectStmt
  const [target, ...more] = targetList
  if (Object.keys(rest).length > 0 || more.length > 0 || !target || !('ResTarget' in target)) return undefined
  const { val, name, indirection } = target.ResTarget
  if (name !== undefined || indirection !== undefined || !val || !('TypeCast' in val)) return undefined
  const { arg, typeName } = val.TypeCast
  return arg && 'A_Const' in arg && arg.A_Const.isnull === true ? typeName : undefined
}

/** `"pg_catalog"."int4"[]`; undefined for sets and for `table.column%type`. */
export function typeText({ names, setof, pct_type, arrayBounds = [] }: TypeName): string | undefined {
  const parts = nameParts(names)
  if (setof || pct_type || parts.length === 0 || parts.length > 2) return undefined
  return `${parts.map(quoteName).join('.')}${arrayBounds.length > 0 ? '[]' : ''}`
}
