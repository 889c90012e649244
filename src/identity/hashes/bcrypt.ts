import type { StoredHash } from './hash.ts'

/** `$2x$` marks hashes of an implementation with a bug, which the library does not reproduce. */
const FORM = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/

/** At cost 0. Each step doubles it: 14 takes a second. */
const MS_PER_ROUND = 0.06

/**
 * bcrypt reads 72 bytes of a password and ignores the rest. The rest counts from the first sign-in on, which stores a hash of ours.
 * Some implementations stop at a NUL, so a password with one never matches; no request carries one.
 */
export function bcryptHash(stored: string): StoredHash | undefined {
  const cost = Number(FORM.exec(stored)?.[1])
  if (!(cost >= 4 && cost <= 31)) return undefined
  return {
    cost: { time: 2 ** cost * MS_PER_ROUND, memory: 4 },
    async matches(password) {
      // Loaded on demand: most services have no hash of this kind.
      const { verify } = await import('@node-rs/bcrypt')
      return !password.includes('\0') && verify(password, stored)
    },
  }
}
