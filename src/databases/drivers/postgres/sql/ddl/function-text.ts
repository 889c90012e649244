import type { CreateFunctionStmt, DefElem, Node } from 'libpg-query'
import { typeText } from '#databases/drivers/postgres/sql/ddl/type-names.ts'
import { nameParts } from '#databases/drivers/postgres/sql/parse-tree.ts'
import { DepthFailure, parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'
import { fail } from '#databases/failures.ts'

/** The function that a text of one CREATE FUNCTION defines. */
type FunctionText = {
  readonly schema: string
  readonly name: string
  /** Types of the input arguments, as SQL. */
  readonly argTypes: readonly string[]
  readonly isDefiner: boolean
}

/** Characters. Parsing 100,000 takes up to 0.1 s of the process. */
const MAX_DDL = 100_000

/**
 * Reads exactly one CREATE [OR REPLACE] FUNCTION with PostgreSQL's own grammar. `bound`: on a client with row-level security, where a
 * function runs as its caller (gateway.md 19).
 */
export async function readFunction(
  ddl: string,
  { bound }: { readonly bound: boolean },
): Promise<FunctionText> {
  const statement = await soleStatement(ddl)
  const { funcname = [], parameters = [] } = statement
  const [name = '', schema = 'public', ...others] = nameParts(funcname).toReversed()
  if (others.length > 0) throw refuse('The name of a function has at most a schema in front of it')
  requireOptions(statement, bound)
  const argTypes = parameters.flatMap(inputType)
  return { schema, name, argTypes, isDefiner: isTrue(optionsOf(statement).get('security')?.arg) }
}

async function soleStatement(ddl: string): Promise<CreateFunctionStmt> {
  if (ddl.includes('\0') || ddl.length > MAX_DDL)
    throw refuse(`ddl has at most ${MAX_DDL} characters, and none of them is NUL`)
  const { stmts = [] } = await parse(ddl).catch((error: unknown) => {
    if (error instanceof SyntaxFailure) throw refuse(error.message)
    if (error instanceof DepthFailure) throw refuse('ddl is nested too deep')
    throw error
  })
  const [only, ...others] = stmts
  if (!only?.stmt || others.length > 0 || !('CreateFunctionStmt' in only.stmt))
    throw refuse('ddl is exactly one statement: create [or replace] function …')
  const statement = only.stmt.CreateFunctionStmt
  if (statement.is_procedure) throw refuse('ddl creates a function, not a procedure')
  return statement
}

const optionsOf = ({ options = [] }: CreateFunctionStmt): ReadonlyMap<string, DefElem> =>
  new Map(
    options.flatMap((option) =>
      'DefElem' in option ? [[option.DefElem.defname ?? '', option.DefElem]] : [],
    ),
  )

function requireOptions(statement: CreateFunctionStmt, bound: boolean): void {
  const options = optionsOf(statement)
  const unknown = [...options.keys()].find((name) => !OPTIONS.has(name))
  if (unknown !== undefined) throw refuse(`The option ${unknown} is not allowed`)
  if (listOf(options.get('as')?.arg).length > 1) throw refuse('AS has one text, the body')
  const language = stringIn(options.get('language')?.arg) ?? (statement.sql_body ? 'sql' : '')
  if (MACHINE_CODE.has(language.toLowerCase())) throw refuse(`Language ${language} is not allowed`)
  if (!bound) return
  if (language !== 'sql' && language !== 'plpgsql')
    throw refuse('On a client with row-level security the language is sql or plpgsql')
  if (isTrue(options.get('security')?.arg))
    throw refuse('On a client with row-level security a function is not SECURITY DEFINER')
  if (options.has('set')) throw refuse('On a client with row-level security a function has no SET clause')
}

const OPTIONS = new Set([
  'language', 'as', 'volatility', 'strict', 'cost', 'rows', 'parallel', 'security', 'set',
]) // biome-ignore format: a list
const MACHINE_CODE = new Set(['c', 'internal'])

function inputType(parameter: Node): readonly string[] {
  if (!('FunctionParameter' in parameter)) return []
  const { mode, argType } = parameter.FunctionParameter
  if (mode === 'FUNC_PARAM_OUT' || mode === 'FUNC_PARAM_TABLE') return []
  const type = argType && typeText(argType)
  if (type === undefined) throw refuse('Each argument names its type: table.column%type is not allowed')
  return [type]
}

const stringIn = (node: Node | undefined): string | undefined =>
  node && 'String' in node ? (node.String.sval ?? '') : undefined
const listOf = (node: Node | undefined): readonly Node[] =>
  node && 'List' in node ? (node.List.items ?? []) : []
const isTrue = (node: Node | undefined): boolean =>
  node !== undefined && 'Boolean' in node && node.Boolean.boolval === true

export const refuse = (hint: string) => fail('invalid_function', { hint })
