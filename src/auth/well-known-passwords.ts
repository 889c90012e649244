import { readFileSync } from 'node:fs'

/** In NFKC and lower case. Loaded where a password is checked against it, and once, because a module is. */
export const WELL_KNOWN_PASSWORDS: ReadonlySet<string> = new Set(
  readFileSync(new URL('well-known-passwords.txt', import.meta.url), 'utf8')
    .replace(/^(#.*\n)+\n/, '')
    .trimEnd()
    .split('\n'),
)
