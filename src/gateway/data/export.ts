import { csvCell, csvLine } from '#databases/drivers/csv-lines.ts'
import { eachRow } from '#databases/drivers/json-rows.ts'
import type { Body } from '#databases/request/fields.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { rowBatches } from '../bulk/streamed-rows.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { columnsOf, prepare } from '../prepare.ts'

export type ExportFormat = 'csv' | 'jsonl'

/** All rows of a read, as they come: lines of CSV with that of the names, or JSON lines. */
export const exportRows = (
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  format: ExportFormat,
): AsyncGenerator<Buffer> =>
  format === 'csv' ? csvOf(kernel, caller, body) : jsonLinesOf(kernel, caller, body)

async function* csvOf(kernel: Kernel, caller: GatewayCaller, body: Body): AsyncGenerator<Buffer> {
  const read = await prepare(kernel, caller, body, 'export')
  yield Buffer.from(csvLine(columnsOf(read.plan).map(({ name }) => csvCell(name))))
  const { lines } = await read.run()
  yield* lines
}

async function* jsonLinesOf(kernel: Kernel, caller: GatewayCaller, body: Body): AsyncGenerator<Buffer> {
  const read = await prepare(kernel, caller, body, 'stream')
  for await (const batch of rowBatches(await read.run())) {
    // The rows of relations are lines, and stored JSON may have some. Line breaks and tabs of texts are escaped.
    const rows = [...eachRow(`[${batch}]`)].map((row) => row.replaceAll(/[\n\r\t]/g, ' '))
    yield Buffer.from(`${rows.join('\n')}\n`)
  }
}

/** The number of rows as the database estimates it, if it does. */
export async function estimateRows(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
): Promise<number | undefined> {
  const { columns: _, ...rest } = body
  try {
    return await (await prepare(kernel, caller, { ...rest, count: 'planned' }, 'count')).run()
  } catch {
    return undefined
  }
}
