import { fail } from '../errors.ts'
import type { Aliases } from './row-batches.ts'

/** Delimiters of CSV by their names. */
export const DELIMITERS = { comma: ',', semicolon: ';', tab: '\t' } as const

/** Reads `{"name in the file": "column", "another": null}`. */
export function aliasesIn(columns: string | undefined): Aliases {
  if (columns === undefined || columns === '') return new Map()
  const entries = Object.entries(parsed(columns))
  if (!entries.every(([, as]) => as === null || typeof as === 'string')) throw malformed()
  return new Map(entries as [string, string | null][]) // just checked
}

function parsed(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {
    // Not JSON.
  }
  throw malformed()
}

const malformed = () =>
  fail('invalid_import', {
    message: 'columns is a JSON object: name in the file to column of the table, or to null',
    hint: 'For example {"Book title": "title", "notes": null}',
    details: { field: 'columns' },
  })
