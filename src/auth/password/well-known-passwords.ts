import { readFileSync } from 'node:fs'

/** In NFKC and lower case. Import this module dynamically: it reads the file when it is loaded. */
export const WELL_KNOWN_PASSWORDS: ReadonlySet<string> = new Set(
  readFileSync(new URL('well-known-passwords.txt', import.meta.url), 'utf8')
    .replace(/^(#.*\n)+\n/, '')
    .trimEnd()
    .split('\n'),
)
