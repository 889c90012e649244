import type { Failure } from '#kernel/errors.ts'

/** One sentence about the failure, the remedy, and the rows that are stored. */
export function runError({ code, message, hint, details: { rows_inserted: inserted } = {} }: Failure): Error {
  const stored = typeof inserted === 'number' && inserted > 0 ? ` ${inserted} rows are stored.` : ''
  return new Error(`${message}${hint === undefined ? '' : `: ${hint}`} (${code}).${stored}`)
}
