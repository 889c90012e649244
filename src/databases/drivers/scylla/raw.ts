import type { types } from 'cassandra-driver'
import type { SqlAnswer, SqlRequest } from '#databases/drivers/driver.ts'
import { requirePresence } from '#databases/drivers/presence.ts'
import { isInvalid, isUnprepared, messageOf } from '#databases/drivers/scylla/errors.ts'
import { rowText, writerOf } from '#databases/drivers/scylla/rows.ts'
import type { Binding, Session } from '#databases/drivers/scylla/session.ts'
import { answerTooLarge } from '#databases/drivers/too-large.ts'
import { fail } from '#databases/failures.ts'
import type { Json } from '#databases/plan.ts'
import { Failure } from '#kernel/errors.ts'

const largestPage = 1_000

/** An answer of more bytes is too large, however few its rows are. */
type How = { readonly isWrite: boolean; readonly mostBytes: number }

/** One statement of the caller's own text. Its pages are read until there are none, or more rows than may be. */
export async function runCql(
  session: Session,
  request: SqlRequest,
  { isWrite, mostBytes }: How,
): Promise<SqlAnswer> {
  try {
    const bindings = await bindingsOf(session, request)
    return await pages(session, request, bindings, { isWrite, mostBytes })
  } catch (error) {
    throw explained(error)
  }
}

async function pages(
  session: Session,
  { text, maxRows, presence }: SqlRequest,
  bindings: readonly Binding[],
  { isWrite, mostBytes }: How,
): Promise<SqlAnswer> {
  const chunks: string[] = []
  let [rows, bytes] = [0, 0]
  let after: string | undefined
  do {
    requirePresence(presence)
    const size = Math.min(largestPage, maxRows + 1 - rows)
    const page = await session.page({ text, bindings }, { size, after, isWrite })
    const columns = columnsOf(page)
    for (const row of page.rows ?? []) {
      const chunk = rowText(row, columns, false)
      bytes += chunk.length
      chunks.push(chunk)
    }
    rows = chunks.length
    after = page.pageState ?? undefined
    if (bytes > mostBytes) throw answerTooLarge(mostBytes)
    if (rows > maxRows) throw fail('result_too_large', { hint: `At most ${maxRows} rows; ask for less.` })
  } while (after !== undefined)
  return { json: [Buffer.from(`[${chunks.join()}]`)], rows, affected: 0, statements: 1 }
}

const columnsOf = ({ columns }: types.ResultSet) =>
  (columns ?? []).map(({ name, type }) => ({
    key: name,
    head: `${JSON.stringify(name)}:`,
    write: writerOf(type),
  }))

/** Values of the parameters, told by the columns that they belong to. */
async function bindingsOf(session: Session, { text, values }: SqlRequest): Promise<Binding[]> {
  if (values === undefined) return []
  const parameters = await session.parameters(text)
  if (values.length !== parameters.length)
    throw fail('invalid_sql', {
      message: `The statement has ${parameters.length} parameters, params has ${values.length}`,
      details: { field: 'params' },
    })
  return values.map((value: Json, index) => ({ value, column: parameters[index]?.name ?? '' }))
}

/** A failure of the caller's own text: the server's sentence helps them, and says nothing that they did not write. */
function explained(error: unknown): unknown {
  if (!(error instanceof Failure)) return error
  if (isUnprepared(error))
    return fail('invalid_sql', { hint: 'A name in it is not there any more.', cause: error.cause })
  const isText = isInvalid(error) || error.code === 'invalid_definition'
  return isText ? fail('invalid_sql', { hint: messageOf(error.cause), cause: error.cause }) : error
}
