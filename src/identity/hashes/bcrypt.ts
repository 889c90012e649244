import type { StoredHash } from './hash.ts'

/** `$2x$` marks hashes of an old bug, which the library does not reproduce. */
const FORM = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/

/** Milliseconds at cost 0; each more doubles them, so that 14 takes a second. */
const ROUND = 0.06

/**
 * bcrypt reads 72 bytes of a password and ignores the rest: so did whoever made the hash, and the rest counts from the
 * first sign-in on. Some implementations stop at a NUL; no request carries one, and none matches.
 */
export function bcryptHash(stored: string): StoredHash | undefined {
  const cost = Number(FORM.exec(stored)?.[1])
  if (!(cost >= 4 && cost <= 31)) return undefined
  return {
    cost: { time: 2 ** cost * ROUND, memory: 4 },
    async matches(password) {
      // Loaded for the first hash of this kind, which most services never meet.
      const { verify } = await import('@node-rs/bcrypt')
      return !password.includes('\0') && verify(password, stored)
    },
  }
}
