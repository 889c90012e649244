import { fail } from '#databases/failures.ts'

/** The only place where an identifier is quoted. A name of the catalogue or a checked alias; NUL, which would end the text of the statement early, never gets here. */
export function quoteName(name: string): string {
  if (/^[a-z0-9_]+$/i.test(name)) return `"${name}"`
  if (name.includes('\0')) throw fail('invalid_identifier')
  return `"${name.replaceAll('"', '""')}"`
}
