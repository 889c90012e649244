import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { fromBase64, isSame, MIN_KEY, type StoredHash } from './hash.ts'

const derive = promisify(pbkdf2)

/**
 * `bytes` of a digest: a longer key costs all iterations once more for each further digest. `iteration`: milliseconds on a processor
 * without SHA instructions, which halve the first two.
 */
const DIGESTS = {
  sha1: { bytes: 20, iteration: 0.000_3 },
  sha256: { bytes: 32, iteration: 0.000_3 },
  sha512: { bytes: 64, iteration: 0.000_45 },
} as const

/** `$pbkdf2-sha256$i=600000,l=32$salt$key` (PHC), `$pbkdf2-sha256$29000$salt$key` (passlib); without a digest SHA-1. */
const PHC =
  /^\$pbkdf2(?:-(sha1|sha256|sha512))?\$(?:i=)?(\d{1,9})(?:,l=\d{1,3})?\$([A-Za-z0-9+/.]{0,128}={0,2})\$([A-Za-z0-9+/.]{1,172}={0,2})$/

/** `pbkdf2_sha256$600000$salt$key`, with the salt as plain text. */
const DJANGO = /^pbkdf2_(sha1|sha256|sha512)\$(\d{1,9})\$([^$]{1,128})\$([A-Za-z0-9+/]{1,172}={0,2})$/

/** PBKDF2 with HMAC (RFC 8018). */
export function pbkdf2Hash(stored: string): StoredHash | undefined {
  const django = DJANGO.exec(stored)
  const [, digest = 'sha1', iterations = '', salt = '', encoded = ''] = django ?? PHC.exec(stored) ?? []
  const key = fromBase64(encoded)
  const rounds = Number(iterations)
  if (rounds < 1 || key.length < MIN_KEY) return undefined
  const { bytes, iteration } = DIGESTS[digest as keyof typeof DIGESTS] // the forms name no other
  const saltBytes = django === null ? fromBase64(salt) : Buffer.from(salt)
  return {
    cost: { time: rounds * Math.ceil(key.length / bytes) * iteration, memory: 0 },
    matches: async (password) => isSame(await derive(password, saltBytes, rounds, key.length, digest), key),
  }
}
