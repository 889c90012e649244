import { DepthFailure, parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'
import { fail } from '#databases/failures.ts'

/** Statements that read or write rows, and leave neither setting, role nor transaction behind. */
const KINDS: ReadonlySet<string> = new Set([
  'SelectStmt',
  'InsertStmt',
  'UpdateStmt',
  'DeleteStmt',
  'MergeStmt',
])

/** Throws a failure unless PostgreSQL's own grammar reads the text as one statement of these kinds. */
export async function requireOneStatement(text: string): Promise<void> {
  const [only, ...others] = await statementsIn(text)
  if (only === undefined || others.length > 0) throw invalid('The text has to be exactly one statement.')
  const [kind = '', tree] = Object.entries(only)[0] ?? []
  const isInto = kind === 'SelectStmt' && typeof tree === 'object' && tree !== null && 'intoClause' in tree
  if (!KINDS.has(kind) || isInto)
    throw invalid('The statement is one of SELECT (without INTO), INSERT, UPDATE, DELETE, MERGE.')
}

async function statementsIn(text: string): Promise<readonly object[]> {
  if (text.includes('\0')) throw invalid('The text contains NUL.')
  try {
    const { stmts = [] } = await parse(text)
    return stmts.map(({ stmt = {} }) => stmt)
  } catch (cause) {
    if (cause instanceof SyntaxFailure || cause instanceof DepthFailure)
      throw fail('invalid_sql', { hint: cause.message, cause })
    throw cause
  }
}

const invalid = (hint: string) => fail('invalid_sql', { hint, details: { field: 'query' } })
