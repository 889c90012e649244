import type { RowsFacts, RowsResult } from '#databases/drivers/driver.ts'

/** A result whose rows are all in memory. */
export const collectedRows = (json: readonly Buffer[], facts: RowsFacts): RowsResult => ({
  json,
  facts: () => facts,
})
