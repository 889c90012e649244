import { verify } from '@node-rs/argon2'
import type { StoredHash } from './hash.ts'

/** PHC strings of the reference implementation; without `v=` it is version 1.0. Salt 8 to 96 bytes, tag 16 to 96. */
const FORM =
  /^\$argon2(?:id|i|d)\$(?:v=(?:16|19)\$)?m=(\d{1,7}),t=(\d{1,7}),p=(\d{1,3})\$[A-Za-z0-9+/]{11,128}\$[A-Za-z0-9+/]{22,128}$/

/** Milliseconds for a KiB in one pass, where the memory is larger than the processor's caches. Lanes run one after another. */
const KIB = 0.000_4

/** Argon2id, Argon2i and Argon2d (RFC 9106) of any parameters. */
export function argon2Hash(stored: string): StoredHash | undefined {
  const [memory = 0, passes = 0, lanes = 0] = FORM.exec(stored)?.slice(1).map(Number) ?? []
  // Section 3.1 of the RFC; the library throws on less.
  if (passes < 1 || lanes < 1 || memory < 8 * lanes) return undefined
  return {
    cost: { time: memory * passes * KIB, memory },
    matches: (password) => verify(stored, password),
  }
}
