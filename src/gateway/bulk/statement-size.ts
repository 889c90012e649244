/** How many rows the next statement of a bulk insert has. */
type StatementSize = {
  next(): number
  /** A statement has stored so many rows in this time. */
  stored(rows: number, milliseconds: number): void
  /** A row was refused. */
  refused(): void
  grow(): void
  /** The sink cannot write several rows at once. */
  toOneRow(): void
}

/** Rows of one statement. More are hardly faster. */
const MAX_ROWS = 5_000
/** Rows of the first statement, when nothing is known about the speed of the sink. */
const FIRST = 100
/** Milliseconds that a statement should take at most: a trigger of the sink can make each row slow, and statements have a time limit. */
const PACE = 1_000

/** About as many rows as there were between the last bad ones, and no more than the sink stores in time. */
export function createStatementSize(maxRows: number): StatementSize {
  let largest = Math.min(MAX_ROWS, maxRows)
  let size = largest
  /** The most rows of a statement at the speed of the last ones. */
  let paced = FIRST
  /** Average number of rows from one bad row to the next. */
  let gap = largest
  let sinceBad = 0
  return {
    next: () => Math.min(size, paced),
    stored(rows, milliseconds) {
      sinceBad += rows
      if (milliseconds > PACE) paced = Math.max(1, Math.floor((rows * PACE) / milliseconds))
      else if (rows >= paced && 2 * milliseconds <= PACE) paced = Math.min(largest, 2 * paced)
    },
    refused() {
      gap = (gap + sinceBad + 1) / 2
      sinceBad = 0
      size = Math.min(largest, Math.max(1, Math.round(gap / 2)))
    },
    grow() {
      size = Math.min(largest, size * 2)
    },
    toOneRow() {
      largest = 1
      size = 1
    },
  }
}
