import type { RowsFacts, RowsResult } from '#databases/drivers/driver.ts'

/** Rows that are all here. */
export const collectedRows = (json: readonly Buffer[], facts: RowsFacts): RowsResult => ({
  json,
  facts: () => facts,
})
