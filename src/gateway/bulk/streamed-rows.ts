import type { RowsResult } from '#databases/drivers/driver.ts'

/** Bytes after which rows are passed on. A row can be longer. */
const BATCH = 524_288

/** The rows of a result in batches: JSON texts of rows, separated by commas. */
export async function* rowBatches({ json }: Pick<RowsResult, 'json'>): AsyncGenerator<string> {
  let chunks: Buffer[] = []
  let size = 0
  for await (const chunk of json) {
    chunks.push(chunk)
    size += chunk.length
    if (size < BATCH) continue
    yield* rowsIn(chunks)
    chunks = []
    size = 0
  }
  yield* rowsIn(chunks)
}

/** A chunk ends with a whole row, so these are the rows without the brackets of the array and the comma before them. */
function* rowsIn(chunks: readonly Buffer[]): Generator<string> {
  const text = Buffer.concat(chunks).toString()
  const first = text.indexOf('{')
  if (first >= 0) yield text.slice(first, text.lastIndexOf('}') + 1)
}
