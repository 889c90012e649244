import type { JwtClaims } from './jwt-claims.ts'

/** A token that was verified by the keys of a version, and what policies see of it. */
type KeptJwt = JwtClaims & {
  readonly issuer: string
  readonly version: string | undefined
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/** Verified tokens by their hash, at most `max` bytes; beyond it those that were not used for longest go. */
export type VerifiedJwts = {
  get(key: string): KeptJwt | undefined
  set(key: string, jwt: KeptJwt): void
  delete(key: string): void
}

export function createVerifiedJwts(max: number): VerifiedJwts {
  // A Map keeps the order of insertion.
  const kept = new Map<string, KeptJwt>()
  let bytes = 0

  function remove(key: string): void {
    const jwt = kept.get(key)
    if (jwt === undefined) return
    kept.delete(key)
    bytes -= sizeOf(jwt)
  }

  return {
    get(key) {
      const jwt = kept.get(key)
      if (jwt === undefined) return undefined
      kept.delete(key)
      kept.set(key, jwt)
      return jwt
    },
    set(key, jwt) {
      remove(key)
      kept.set(key, jwt)
      bytes += sizeOf(jwt)
      for (const oldest of kept.keys()) {
        if (bytes <= max) break
        remove(oldest)
      }
    },
    delete: remove,
  }
}

/** Of the entry itself: key, object and place in the map. */
const ENTRY = 400

/** Two bytes for each character, which is the most. */
const sizeOf = ({ claims, userId }: KeptJwt): number => ENTRY + 2 * (claims.length + userId.length)
