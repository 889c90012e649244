import { fail } from '#databases/failures.ts'

/**
 * Quotes an identifier: a name of the catalogue or a checked alias. No other function quotes names. NUL would end the text of the statement
 * early, so it is refused.
 */
export function quoteName(name: string): string {
  if (/^[a-z0-9_]+$/i.test(name)) return `"${name}"`
  if (name.includes('\0')) throw fail('invalid_identifier')
  return `"${name.replaceAll('"', '""')}"`
}
