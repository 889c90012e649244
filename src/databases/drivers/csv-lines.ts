import type { LinesResult, ResultColumn, RowsResult } from '#databases/drivers/driver.ts'
import { eachMember, eachRow } from '#databases/drivers/json-rows.ts'
import { startTimeSlice } from '#kernel/time-slice.ts'

/**
 * A line of CSV (RFC 4180). A value is written as in JSON answers, a text without its quotes; JSON, arrays and relations are JSON text. NULL is an
 * empty cell, so an empty text is `""`. A text that a spreadsheet would take for a formula stays as it is.
 */
export const csvLine = (cells: readonly string[]): string => `${cells.join()}\r\n`

/** The cell of a text. */
export const csvCell = (text: string): string =>
  text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text

/** Writes collected rows as lines of CSV, in slices, so that the event loop is not blocked. */
export async function linesOf(
  json: readonly Buffer[],
  columns: readonly ResultColumn[],
): Promise<readonly Buffer[]> {
  const slice = startTimeSlice()
  const lines: Buffer[] = []
  for (const row of eachRow(Buffer.concat(json).toString())) {
    const values = valuesIn(row, columns)
    lines.push(Buffer.from(csvLine(columns.map(({ isJson }, index) => cellOf(values[index], isJson)))))
    if (slice.isOver()) await slice.next()
  }
  return lines
}

/** By position, because a caller's own SQL can name two columns alike; by name where a backend has another order. */
function valuesIn(row: string, columns: readonly ResultColumn[]): readonly (string | undefined)[] {
  const members = [...eachMember(row)]
  const isInOrder = members.every(([name], index) => name === columns[index]?.name)
  if (isInOrder) return members.map(([, json]) => json)
  const byName = new Map(members)
  return columns.map(({ name }) => byName.get(name))
}

function cellOf(json: string | undefined, isJson: boolean): string {
  if (json === undefined || json === 'null') return ''
  return csvCell(json.startsWith('"') && !isJson ? JSON.parse(json) : json)
}

/** The rows of a backend whose results are JSON in memory. */
export async function collectedLines(
  { json, facts }: RowsResult,
  columns: readonly ResultColumn[],
): Promise<LinesResult> {
  if (Symbol.asyncIterator in json) throw new Error('A backend that streams rows has to write CSV itself')
  return { lines: await linesOf(json, columns), facts }
}
