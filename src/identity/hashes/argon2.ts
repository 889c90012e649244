import { verify } from '@node-rs/argon2'
import type { StoredHash } from './hash.ts'

/** PHC strings of the reference implementation. Without `v=` the version is 1.0. Salt 8 to 96 bytes, tag 16 to 96. */
const FORM =
  /^\$argon2(?:id|i|d)\$(?:v=(?:16|19)\$)?m=([1-9]\d{0,6}),t=([1-9]\d{0,6}),p=([1-9]\d{0,2})\$([A-Za-z0-9+/]{11,128})\$([A-Za-z0-9+/]{22,128})$/

/** For one pass over memory that exceeds the processor's caches. Lanes run one after another. */
const MS_PER_KIB = 0.000_4

/** Argon2id, Argon2i and Argon2d (RFC 9106) of any parameters. */
export function argon2Hash(stored: string): StoredHash | undefined {
  const [, m, t, p, salt = '', tag = ''] = FORM.exec(stored) ?? []
  const [memory, passes, lanes] = [Number(m), Number(t), Number(p)]
  // RFC 9106 section 3.1 and RFC 4648 section 3.5. The library throws on anything else.
  if (!(memory >= 8 * lanes) || !isCanonical(salt) || !isCanonical(tag)) return undefined
  return {
    cost: { time: memory * passes * MS_PER_KIB, memory },
    matches: (password) => verify(stored, password),
  }
}

/** Without surplus bits, which would give one value two texts. */
const isCanonical = (text: string): boolean =>
  Buffer.from(text, 'base64').toString('base64').replaceAll('=', '') === text
