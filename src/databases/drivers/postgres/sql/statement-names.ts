import { parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'
import { fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

/**
 * A name that a statement uses. `attribute` follows a dot or a parenthesis: without such a column, PostgreSQL calls the function of that
 * name with the value before it (`select n.pg_cancel_backend from generate_series(1, 9) n`).
 */
type StatementName = {
  readonly kind: 'function' | 'attribute' | 'relation' | 'type' | 'operator'
  readonly schema: string | undefined
  readonly name: string
}

/** Characters. Parsing 20,000 takes about 50 ms of the process. */
const MAX_LENGTH = 20_000

/**
 * Every name in a statement, found by PostgreSQL's own grammar. Refuses text that the grammar does not accept, several statements, and
 * statements that create.
 */
export async function namesIn(text: string): Promise<readonly StatementName[]> {
  if (text.length > MAX_LENGTH)
    throw fail('too_complex', {
      hint: `With the right gateway.query.read a statement has ${MAX_LENGTH} characters at most. Pass values in params.`,
    })
  try {
    const tree = await parse(text)
    if ((tree.stmts?.length ?? 0) > 1)
      throw fail('invalid_sql', { hint: 'The text has to be exactly one statement.' })
    return collect(tree)
  } catch (error) {
    if (error instanceof SyntaxFailure) throw invalid(error)
    if (error instanceof Failure) throw error
    throw fail('too_complex', { cause: error })
  }
}

const invalid = (cause: Error): Failure => fail('invalid_sql', { hint: cause.message, cause })

/** Operators that other syntax implies. */
const IMPLIED = ['=', '<>', '<', '>', '<=', '>='].map(
  (name): StatementName => ({ kind: 'operator', schema: undefined, name }),
)

/** Statements that EXPLAIN runs or plans. It would also create a table, which a read-only transaction does not prevent. */
const PLANNED: ReadonlySet<string> = new Set([
  'SelectStmt',
  'ExplainStmt',
  'VariableShowStmt',
  // A read-only transaction prevents these.
  'InsertStmt',
  'UpdateStmt',
  'DeleteStmt',
  'MergeStmt',
])

/** `select … into` is a member of its statement. */
function requirePlanned(member: string): void {
  const isPlanned = member.endsWith('Stmt') ? PLANNED.has(member) : member !== 'intoClause'
  if (!isPlanned)
    throw fail('read_only', {
      message: 'Only statements that read are possible here',
      hint: 'EXPLAIN takes a statement of rows: select, insert, update, delete or merge.',
    })
}

/**
 * Finds members by name, because the parser wraps only some nodes in their kind. Not recursive: the tree can be as deep as the text is
 * long.
 */
function collect(tree: unknown): readonly StatementName[] {
  const found = new Map(IMPLIED.map((name) => [nameKey(name), name]))
  const open: unknown[] = [tree]
  while (open.length > 0) {
    const node = open.pop()
    if (typeof node !== 'object' || node === null) continue
    for (const [key, value] of Object.entries(node)) {
      requirePlanned(key)
      for (const name of READERS.get(key)?.(value, node) ?? []) found.set(nameKey(name), name)
      open.push(value)
    }
  }
  return [...found.values()]
}

const nameKey = ({ kind, schema = '', name }: StatementName) => JSON.stringify([kind, schema, name])

type NameReader = (value: unknown, node: object) => readonly StatementName[]

const qualified =
  (kind: StatementName['kind']): NameReader =>
  (value) => {
    const [name, schema] = partsOf(value).toReversed()
    return name === undefined ? [] : [{ kind, schema, name }]
  }

const attributes =
  (from: number): NameReader =>
  (value) =>
    partsOf(value)
      .slice(from)
      .map((name) => ({ kind: 'attribute', schema: undefined, name }))

const relation: NameReader = (value, node) => {
  const { schemaname } = node as { readonly schemaname?: string } // as the parser builds it
  return typeof value === 'string' ? [{ kind: 'relation', schema: schemaname, name: value }] : []
}

const READERS: ReadonlyMap<string, NameReader> = new Map([
  ['funcname', qualified('function')],
  ['relname', relation],
  ['names', qualified('type')],
  ['name', qualified('operator')],
  ['operName', qualified('operator')],
  ['useOp', qualified('operator')],
  ['fields', attributes(1)],
  ['indirection', attributes(0)],
])

/** The names in a list `[{ String: { sval } }, …]`, without stars and subscripts. */
function partsOf(value: unknown): string[] {
  if (!Array.isArray(value)) return []
  return (value as readonly { readonly String?: { readonly sval?: string } }[]).flatMap(
    (part) => part.String?.sval ?? [],
  )
}
