import type { StoredHash } from './hash.ts'
import { HASH_FORMS } from './index.ts'

/** Undefined when the form is unknown; no password matches then. */
export function parseHash(stored: string): StoredHash | undefined {
  for (const read of HASH_FORMS) {
    const hash = read(stored)
    if (hash !== undefined) return hash
  }
  return undefined
}
