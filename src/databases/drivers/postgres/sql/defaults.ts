import type { FuncCall, Node, ParseResult, TypeCast } from 'libpg-query'
import { constantText, soleExpression, systemName } from '#databases/drivers/postgres/sql/parse-tree.ts'
import { parse } from '#databases/drivers/postgres/sql/parser.ts'
import { fail } from '#databases/failures.ts'
import { castOf, castText } from '#databases/plan/casts.ts'

/** Functions that a default may call: they produce a value and have no other effect. */
const ALLOWED_DEFAULT_FUNCTIONS = [
  'now',
  'transaction_timestamp',
  'statement_timestamp',
  'clock_timestamp',
  'timezone',
  'date_trunc',
  'gen_random_uuid',
  'uuid_generate_v4',
  'uuidv4',
  'uuidv7',
  'random',
  'json_build_object',
  'json_build_array',
  'jsonb_build_object',
  'jsonb_build_array',
] as const

/**
 * A default as SQL (gateway.md 10): a literal, or a call of an allowed function with literals. PostgreSQL's own grammar parses the
 * request's text, and the SQL is written from the tree, so no text of the request reaches the statement.
 */
export async function defaultText(expression: string, column: string): Promise<string> {
  const refuse = () =>
    fail('invalid_default', {
      hint: `Use a literal (texts have single quotes: 'new'), or one of: ${ALLOWED_DEFAULT_FUNCTIONS.join(', ')}, current_timestamp, current_date.`,
      details: { column: column.slice(0, 63), default_expression: expression.slice(0, 200) },
    })
  const node = soleExpression(await parsed(expression, refuse))
  const text = node && expressionText(node)
  if (text === undefined) throw refuse()
  return text
}

async function parsed(expression: string, refuse: () => Error): Promise<ParseResult> {
  if (expression.includes('\0') || expression.length > 10_000) throw refuse()
  try {
    return await parse(`select ${expression}`)
  } catch {
    // The caller gets the list of allowed functions rather than the parser's message.
    throw refuse()
  }
}

function expressionText(node: Node): string | undefined {
  if ('A_Const' in node) return constantText(node.A_Const)
  if ('TypeCast' in node) return typedText(node.TypeCast)
  if ('FuncCall' in node) return callText(node.FuncCall)
  if ('SQLValueFunction' in node) return VALUE_FUNCTIONS.get(node.SQLValueFunction.op ?? '')
  if ('A_ArrayExpr' in node) {
    const items = listText(node.A_ArrayExpr.elements ?? [])
    return items === undefined ? undefined : `array[${items}]`
  }
  return undefined
}

const VALUE_FUNCTIONS = new Map<string, string>([
  ['SVFOP_CURRENT_TIMESTAMP', 'current_timestamp'],
  ['SVFOP_CURRENT_DATE', 'current_date'],
  ['SVFOP_CURRENT_TIME', 'current_time'],
  ['SVFOP_LOCALTIMESTAMP', 'localtimestamp'],
  ['SVFOP_LOCALTIME', 'localtime'],
])

function typedText({ arg, typeName }: TypeCast): string | undefined {
  const text = arg && expressionText(arg)
  const type = systemName(typeName?.names)
  const modifiers = modifiersOf(typeName?.typmods)
  if (text === undefined || type === undefined || typeName?.setof || typeName?.pct_type) return undefined
  const array = (typeName?.arrayBounds ?? []).length > 0 ? '[]' : ''
  try {
    return modifiers && `${text}::${typeText(type, modifiers)}${array}`
  } catch {
    return undefined
  }
}

/** Length, precision and scale of a type, and the fields of an interval, which the parser gives as a number too. */
function modifiersOf(nodes: readonly Node[] = []): readonly number[] | undefined {
  const numbers = nodes.map((node) => ('A_Const' in node ? node.A_Const.ival : undefined))
  return numbers.includes(undefined) ? undefined : numbers.map((number) => number?.ival ?? 0)
}

/** Without a length, texts of all types are alike. */
function typeText(type: string, modifiers: readonly number[]): string {
  if (modifiers.length === 0) return castText(castOf(type === 'bpchar' ? 'text' : type))
  const name = TEXTS_WITH_LENGTH.has(type) ? `pg_catalog.${type}` : castText(castOf(type))
  return `${name}(${modifiers.join(', ')})`
}

const TEXTS_WITH_LENGTH: ReadonlySet<string> = new Set(['bpchar', 'varchar'])

function callText(call: FuncCall): string | undefined {
  const { funcname, args = [], funcformat: _format, location: _place, ...rest } = call
  const name = systemName(funcname)
  const known = ALLOWED_DEFAULT_FUNCTIONS.find((allowed) => allowed === name)
  const items = listText(args)
  if (known === undefined || items === undefined || Object.keys(rest).length > 0) return undefined
  // The extension uuid-ossp defines this function, in any schema, so its name stays unqualified.
  return known === 'uuid_generate_v4' ? `${known}(${items})` : `pg_catalog.${known}(${items})`
}

function listText(nodes: readonly Node[]): string | undefined {
  const texts = nodes.map(expressionText)
  return texts.some((text) => text === undefined) ? undefined : texts.join(', ')
}
