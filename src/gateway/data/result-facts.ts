import type { WriteResult } from '#databases/drivers/driver.ts'
import type { Echo, FetchAnswer } from './data.ts'

/** Members next to the rows of a read, known when the rows have been read. */
export function readFacts({ rows, cacheKey, totalPages }: FetchAnswer & Echo): Record<string, unknown> {
  const { hasMore, total } = rows.facts()
  return {
    cache_key: cacheKey,
    ...(total === undefined ? {} : { count: total }),
    ...(hasMore ? { has_more: true } : {}),
    ...(totalPages === undefined ? {} : { total_pages: totalPages }),
  }
}

/** Members next to the rows of a write. */
export const writeFacts = (result: WriteResult): Record<string, unknown> => ({
  affected_rows: result.affected,
  ...(result.total === undefined ? {} : { count: result.total }),
  ...(result.truncated ? { data_truncated: true } : {}),
})

/** The members after the rows and the end of the object. The number of rows is known only then. */
export const tail = (facts: Record<string, unknown>, postProcessing?: string): Buffer => {
  const grouped = postProcessing === undefined ? '' : `,"post_processing":${postProcessing}`
  return Buffer.from(`,${JSON.stringify(facts).slice(1, -1)}${grouped}}`)
}
