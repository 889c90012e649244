import { parse } from '#databases/drivers/postgres/sql/parser.ts'

/**
 * Qualifies an expression: PostgreSQL has written it for the search path pg_catalog, and every name without a schema gets pg_catalog. In
 * the grammar a name is a list of parts with a position in the text; keywords such as `integer` already have two parts. `nullif`, `case x
 * when` and `is distinct from` look up their operator by the search path and cannot be qualified.
 */
export async function qualifyNames(expression: string): Promise<string> {
  const start = 'select '
  const edits: Edit[] = []
  collect(await parse(`${start}${expression}`), edits)
  // Positions are in bytes.
  let text = Buffer.from(`${start}${expression}`)
  for (const { at, length, becomes } of edits.sort((left, right) => right.at - left.at))
    text = Buffer.concat([text.subarray(0, at), Buffer.from(becomes), text.subarray(at + length)])
  return text.subarray(start.length).toString()
}

type Edit = { readonly at: number; readonly length: number; readonly becomes: string }

/** Nodes with names, in the parser's form. */
type NamedNode = {
  readonly kind?: string
  readonly funcname?: Names
  readonly names?: Names
  readonly name?: Names
  readonly location?: number
}
type Names = readonly { readonly String?: { readonly sval?: string } }[]

function collect(node: unknown, edits: Edit[]): void {
  if (typeof node !== 'object' || node === null) return
  for (const [kind, value] of Object.entries(node)) {
    const edit = EDITS.get(kind)?.(value)
    if (edit !== undefined) edits.push(edit)
    collect(value, edits)
  }
}

const EDITS = new Map<string, (node: NamedNode) => Edit | undefined>([
  ['FuncCall', ({ funcname, location }) => schemaAt(funcname, location)],
  // A node inside a typed field is not wrapped.
  ['typeName', ({ names, location }) => schemaAt(names, location)],
  ['A_Expr', operatorAt],
])

function operatorAt({ kind, name, location }: NamedNode): Edit | undefined {
  const operator = soleName(name)
  if (operator === undefined || location === undefined || !kind?.startsWith('AEXPR_OP')) return undefined
  return { at: location, length: operator.length, becomes: `operator(pg_catalog.${operator})` }
}

function schemaAt(names: Names | undefined, location: number | undefined): Edit | undefined {
  if (soleName(names) === undefined || location === undefined) return undefined
  return { at: location, length: 0, becomes: 'pg_catalog.' }
}

function soleName(names: Names = []): string | undefined {
  const [only, ...others] = names
  return others.length === 0 ? only?.String?.sval : undefined
}
