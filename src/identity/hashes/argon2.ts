import { verify } from '@node-rs/argon2'
import type { StoredHash } from './hash.ts'

/** PHC strings of the reference implementation; without `v=` it is version 1.0. Salt 8 to 96 bytes, tag 16 to 96. */
const FORM =
  /^\$argon2(?:id|i|d)\$(?:v=(?:16|19)\$)?m=(\d{1,7}),t=(\d{1,7}),p=(\d{1,3})\$[A-Za-z0-9+/]{11,128}\$[A-Za-z0-9+/]{22,128}$/

/** KiB of one hash, and KiB times passes: libsodium's "sensitive", about four seconds. */
const MOST_MEMORY = 2 ** 20
const MOST_WORK = 2 ** 22

/** Argon2id, Argon2i and Argon2d (RFC 9106) of any parameters. */
export function argon2Hash(stored: string): StoredHash | undefined {
  const [memory = 0, passes = 0, lanes = 0] = FORM.exec(stored)?.slice(1).map(Number) ?? []
  // Section 3.1 of the RFC; the library throws on less.
  if (passes < 1 || lanes < 1 || memory < 8 * lanes) return undefined
  return {
    isTooCostly: memory > MOST_MEMORY || memory * passes > MOST_WORK,
    matches: (password) => verify(stored, password),
  }
}
