import { verify } from '@node-rs/argon2'
import type { StoredHash } from './hash.ts'

/** PHC strings of the reference implementation; without `v=` it is version 1.0. Salt 8 to 96 bytes, tag 16 to 96. */
const FORM =
  /^\$argon2(?:id|i|d)\$(?:v=(?:16|19)\$)?m=([1-9]\d{0,6}),t=([1-9]\d{0,6}),p=([1-9]\d{0,2})\$([A-Za-z0-9+/]{11,128})\$([A-Za-z0-9+/]{22,128})$/

/** Milliseconds for a KiB in one pass, where the memory is larger than the processor's caches. Lanes run one after another. */
const KIB = 0.000_4

/** Argon2id, Argon2i and Argon2d (RFC 9106) of any parameters. */
export function argon2Hash(stored: string): StoredHash | undefined {
  const [, m, t, p, salt = '', tag = ''] = FORM.exec(stored) ?? []
  const [memory, passes, lanes] = [Number(m), Number(t), Number(p)]
  // Section 3.1 of the RFC, and section 3.5 of RFC 4648; the library throws on less.
  if (!(memory >= 8 * lanes) || !isCanonical(salt) || !isCanonical(tag)) return undefined
  return {
    cost: { time: memory * passes * KIB, memory },
    matches: (password) => verify(stored, password),
  }
}

/** No bits left over: they would make two texts of one value. */
const isCanonical = (text: string): boolean =>
  Buffer.from(text, 'base64').toString('base64').replaceAll('=', '') === text
