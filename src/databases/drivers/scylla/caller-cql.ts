import type { SqlRequest, SqlResult } from '#databases/drivers/driver.ts'
import { requirePresence } from '#databases/drivers/presence.ts'
import { answerTooLarge } from '#databases/drivers/result-limits.ts'
import type { CellColumn } from '#databases/drivers/scylla/cells.ts'
import { productOf, requireFewCombinations } from '#databases/drivers/scylla/cql.ts'
import { isInvalid, isUnprepared, messageOf } from '#databases/drivers/scylla/errors.ts'
import { columnWriter, rowText } from '#databases/drivers/scylla/rows.ts'
import type { Session } from '#databases/drivers/scylla/session.ts'
import type { UnpreparedStatements } from '#databases/drivers/scylla/unprepared.ts'
import { bound } from '#databases/drivers/scylla/values.ts'
import { fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

const MAX_PAGE = 1_000

/** The most bytes of a result, however few its rows are. */
type How = {
  readonly keyspace: string
  readonly isWrite: boolean
  readonly maxBytes: number
  /** Combinations of `in` lists in the text, and the most that are possible together with lists in parameters. */
  readonly lookUps: number
  readonly maxLookUps: number
}

/** Runs one statement of the caller's own text. Reads its pages to the end, or until there are too many rows. */
export async function runCql(session: Session, request: SqlRequest, how: How): Promise<SqlResult> {
  try {
    requireFewCombinations(how.lookUps, how.maxLookUps)
    return await session.unprepared(how.keyspace, how.isWrite, async (statements) => {
      const values = await valuesOf(statements, request, how)
      return pages(statements, request, values, how.maxBytes)
    })
  } catch (error) {
    throw failureOfText(error)
  }
}

async function pages(
  statements: UnpreparedStatements,
  { text, maxRows, presence }: SqlRequest,
  values: readonly unknown[],
  maxBytes: number,
): Promise<SqlResult> {
  const chunks: string[] = []
  let [rows, bytes] = [0, 0]
  let after: string | undefined
  let named: readonly CellColumn[] = []
  do {
    requirePresence(presence)
    const page = await statements.page(text, { values, size: Math.min(MAX_PAGE, maxRows + 1 - rows), after })
    requireDistinct(page.columns)
    named = page.columns
    const columns = page.columns.map((column, index) => columnWriter(column, index, column.name))
    for (const row of page.rows) {
      const chunk = rowText(row, columns, false)
      bytes += chunk.length
      chunks.push(chunk)
    }
    rows = chunks.length
    after = page.after
    if (bytes > maxBytes) throw answerTooLarge(maxBytes)
    if (rows > maxRows) throw fail('result_too_large', { hint: `At most ${maxRows} rows; ask for less.` })
  } while (after !== undefined)
  const columns = named.map(({ name }) => ({ name, isJson: false }))
  return { json: [Buffer.from(`[${chunks.join()}]`)], columns, rows, affected: 0, statements: 1 }
}

/** Members of an object have unique names. The statement was a read: results of writes have no duplicate columns. */
function requireDistinct(columns: readonly CellColumn[]): void {
  const names = columns.map(({ name }) => name)
  const duplicate = names.find((name, index) => names.indexOf(name) < index)
  if (duplicate === undefined) return
  throw fail('invalid_sql', {
    message: `Two columns of the result are called ${duplicate}`,
    hint: 'Give one of them another name with AS.',
  })
}

/** Bytes of the parameters; failures name the column that a parameter belongs to. */
async function valuesOf(
  statements: UnpreparedStatements,
  { text, values }: SqlRequest,
  { lookUps, maxLookUps }: How,
): Promise<(Buffer | null)[]> {
  if (values === undefined) return []
  const parameters = await statements.parameters(text)
  if (values.length !== parameters.length)
    throw fail('invalid_sql', {
      message: `The statement has ${parameters.length} parameters, params has ${values.length}`,
      details: { field: 'params' },
    })
  // The server's name for the parameter of `a in ?`.
  const lists = values.filter((_, index) => parameters[index]?.name.startsWith('in('))
  const lengths = lists.map((list) => (Array.isArray(list) ? list.length : 1))
  requireFewCombinations(productOf([lookUps, ...lengths]), maxLookUps)
  return parameters.map(({ type, name }, index) => bound(values[index] ?? null, type, name))
}

/** A failure of the caller's own text. The server's message helps the caller and contains nothing that they did not write. */
function failureOfText(error: unknown): unknown {
  if (!(error instanceof Failure)) return error
  if (isUnprepared(error))
    return fail('invalid_sql', { hint: 'A name in it no longer exists.', cause: error.cause })
  const isText = isInvalid(error) || error.code === 'invalid_definition'
  return isText ? fail('invalid_sql', { hint: messageOf(error.cause), cause: error.cause }) : error
}
