import type { WriteResult } from '#databases/drivers/driver.ts'
import type { Fetched } from './data.ts'

/** What stands beside the rows of a read, once they have been read. */
export function readFacts({ rows, cacheKey }: Fetched): Record<string, unknown> {
  const { hasMore, total } = rows.facts()
  return {
    cache_key: cacheKey,
    ...(total === undefined ? {} : { count: total }),
    ...(hasMore ? { has_more: true } : {}),
  }
}

/** What stands beside the rows of a write. */
export const writeFacts = (result: WriteResult): Record<string, unknown> => ({
  affected_rows: result.affected,
  ...(result.total === undefined ? {} : { count: result.total }),
  ...(result.truncated ? { data_truncated: true } : {}),
})

/** Behind the rows, because how many they are is known then; it closes the object. */
export const tail = (facts: Record<string, unknown>, postProcessing?: string): Buffer => {
  const grouped = postProcessing === undefined ? '' : `,"post_processing":${postProcessing}`
  return Buffer.from(`,${JSON.stringify(facts).slice(1, -1)}${grouped}}`)
}
