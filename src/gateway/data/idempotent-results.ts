import { hash } from 'node:crypto'
import { rowTexts } from '#databases/drivers/json-rows.ts'

/** The result of an operation of a transaction: its JSON without the caller's id. `data` is the part of it that has the rows. */
export type Result = {
  readonly json: Buffer
  readonly data: Buffer
  readonly rows: number
  readonly affected: number
}

/** JSON text of the results of the operations. */
export const resultsText = (
  parts: readonly string[],
  operations: readonly { readonly id: string }[],
): string =>
  `[${operations.map(({ id }, index) => `{"id":${JSON.stringify(id)},${parts[index]?.slice(1)}`).join(',')}]`

/** The text for the idempotency store: all results, or their digests and counts if they exceed the limit in bytes. */
export function storedText(results: readonly (Result & { readonly kind: string })[], max: number): string {
  const size = results.reduce((sum, { json }) => sum + json.length, 0)
  const parts = size > max ? results.map(summaryOf) : results.map(({ json }) => String(json))
  return `[${parts.join(',')}]`
}

const summaryOf = ({ kind, json, rows, affected }: Result & { readonly kind: string }): string =>
  JSON.stringify({
    kind,
    data: [],
    data_omitted: true,
    rows,
    ...(kind !== 'fetch' && { affected_rows: affected }),
    result_sha256: hash('sha256', json),
  })

/** The stored results with the operation ids of the current request. */
export const replayedText = (stored: string, operations: readonly { readonly id: string }[]): string =>
  resultsText(rowTexts(stored), operations)
