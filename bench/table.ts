import { median } from './statistics.ts'

/** A table for the terminal: the first column is aligned left, the others right. */
export function printTable(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  for (const row of rows) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    )
    console.log(`  ${cells.join('   ')}`)
  }
}

export const cost = (values: readonly number[]): string => {
  const middle = median(values)
  return middle < 100 ? middle.toFixed(1) : middle.toFixed(0)
}
