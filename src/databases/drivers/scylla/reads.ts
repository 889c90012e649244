import { collectedRows } from '#databases/drivers/collected-rows.ts'
import type { RowsFacts, RowsResult } from '#databases/drivers/driver.ts'
import type { Page } from '#databases/drivers/scylla/cells.ts'
import { cannot, columnOf, countText, selectText } from '#databases/drivers/scylla/cql.ts'
import { isInvalid, messageOf } from '#databases/drivers/scylla/errors.ts'
import { type ColumnWriter, columnWriter, rowText } from '#databases/drivers/scylla/rows.ts'
import type { Session, Statement } from '#databases/drivers/scylla/session.ts'
import type { CountPlan, Output, ReadPlan } from '#databases/plan/plan.ts'
import type { CountMode } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'

/** Larger results are streamed; below this, a failure in the middle still gets its own status. */
const HIGH_WATER = 1_048_576
/** Rows of the first page, whose size is unknown; later pages have as many rows as fit the high-water mark. */
const FIRST_PAGE = 100
const MAX_PAGE = 5_000

export async function selectRows(session: Session, plan: ReadPlan): Promise<RowsResult> {
  const { page, count, head } = plan.request
  if (page.offset > 0) throw cannot('offset')
  if (count !== undefined) requireExact(count)
  const statement = selectText(plan)
  const total = count && (await countRows(session, plan))
  if (head || page.limit === 0) return collectedRows([Buffer.from('[]')], { rows: 0, hasMore: false, total })
  const state = { rows: 0, more: false, ended: false }
  const chunks = chunksOf(session, statement, plan, state)
  const ready: Buffer[] = []
  for (let size = 0; size <= HIGH_WATER; ) {
    const { value, done } = await chunks.next()
    if (done) return collectedRows(ready, { rows: state.rows, hasMore: page.open && state.more, total })
    ready.push(value)
    size += value.length
  }
  return flowing(ready, chunks, () => {
    if (!state.ended) throw new Error('The rows have not been read to their end')
    return { rows: state.rows, hasMore: page.open && state.more, total }
  })
}

/** Nothing is held between two pages, so a reader may leave at any time. */
const flowing = (
  ready: readonly Buffer[],
  rest: AsyncGenerator<Buffer>,
  facts: () => RowsFacts,
): RowsResult => ({
  json: (async function* () {
    yield* ready
    yield* rest
  })(),
  facts,
})

/** Yields a chunk for each page; the next page is requested after the previous one was taken. */
async function* chunksOf(
  session: Session,
  statement: Statement,
  { output, request }: ReadPlan,
  state: { rows: number; more: boolean; ended: boolean },
): AsyncGenerator<Buffer> {
  const { limit } = request.page
  let [size, bytes] = [Math.min(FIRST_PAGE, limit + 1), 0]
  let after: string | undefined
  do {
    const page = await read(session, statement, size, after)
    const wanted = page.rows.slice(0, limit - state.rows)
    state.more ||= page.rows.length > wanted.length
    const columns = writers(page, output)
    const text = wanted.map((row) => rowText(row, columns, request.stripNulls)).join(',')
    const chunk = Buffer.from(
      `${after === undefined ? '[' : wanted.length > 0 && state.rows > 0 ? ',' : ''}${text}`,
    )
    state.rows += wanted.length
    bytes += chunk.length
    size = Math.min(MAX_PAGE, Math.max(1, Math.floor((HIGH_WATER * state.rows) / bytes)))
    after = page.after
    if (chunk.length > 0) yield chunk
  } while (after !== undefined && !state.more)
  state.ended = true
  yield Buffer.from(']')
}

/** Columns of the result, after `before` others in the statement. */
export const writers = ({ columns }: Page, output: readonly Output[], before = 0): ColumnWriter[] =>
  output.map((item, index) => {
    const column = columns[before + index]
    if (column === undefined) throw new Error(`The server left out column ${columnOf(item).name}`)
    return columnWriter(column, before + index, item.as)
  })

export async function countRows(session: Session, plan: Pick<CountPlan, 'table' | 'where'>): Promise<number> {
  // The server counts in pages of this size.
  const { rows } = await read(session, countText(plan), MAX_PAGE, undefined)
  return Number(rows[0]?.[0]?.readBigInt64BE() ?? 0)
}

export function requireExact(mode: CountMode): void {
  if (mode !== 'exact') throw cannot(`${mode} counts`)
}

/** All names are known, so if the server rejects the statement, CQL does not support its combination of conditions and order. */
async function read(session: Session, statement: Statement, size: number, after: string | undefined) {
  try {
    return await session.page(statement, { size, after })
  } catch (error) {
    if (!(error instanceof Failure) || !isInvalid(error)) throw error
    const { code, status, message, details } = cannot('these conditions in this order')
    const hint = messageOf(error.cause).replace(/ If you want .* use ALLOW FILTERING\.?/s, '.')
    throw new Failure(code, status, message, { hint, cause: error.cause, ...(details && { details }) })
  }
}
