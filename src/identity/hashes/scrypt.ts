import { type ScryptOptions, scrypt } from 'node:crypto'
import { fromBase64, isSame, MIN_KEY, type StoredHash } from './hash.ts'

/** better-auth's `salt:key`, both in hex. The salt is the hex text itself, not the bytes that it encodes. */
const BETTER_AUTH = /^([0-9a-f]{8,128}):([0-9a-f]{128})$/i

/** @better-auth/utils, src/password: the same from better-auth 1.2 to 1.7. */
const BETTER_AUTH_COST = { N: 16_384, r: 16, p: 1 }

/** `$scrypt$ln=16,r=8,p=1$salt$key`, as PHC and passlib write it. */
const PHC =
  /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{0,128}={0,2})\$([A-Za-z0-9+/]{1,172}={0,2})$/

/** For a block of 128 bytes, written once and read once. */
const MS_PER_BLOCK = 0.000_4

/** For 128 bytes of the PBKDF2 at the start and the end. They matter where N is small. */
const MS_PER_PBKDF2_BLOCK = 0.001

/** scrypt (RFC 7914). */
export function scryptHash(stored: string): StoredHash | undefined {
  const [, hexSalt, hexKey = ''] = BETTER_AUTH.exec(stored) ?? []
  if (hexSalt !== undefined) return hashOf(hexSalt, Buffer.from(hexKey, 'hex'), BETTER_AUTH_COST)
  const [, ln = '', r = '', p = '', salt = '', key = ''] = PHC.exec(stored) ?? []
  return hashOf(fromBase64(salt), fromBase64(key), { N: 2 ** Number(ln), r: Number(r), p: Number(p) })
}

type Parameters = { readonly N: number; readonly r: number; readonly p: number }

function hashOf(salt: string | Buffer, key: Buffer, parameters: Parameters): StoredHash | undefined {
  const { N, r, p } = parameters
  if (N < 2 || r < 1 || p < 1 || key.length < MIN_KEY) return undefined
  // One and a half times what RFC 7914 needs, for the library's own buffers.
  const options = { ...parameters, maxmem: 192 * r * (N + p) }
  return {
    cost: { time: r * p * (N * MS_PER_BLOCK + MS_PER_PBKDF2_BLOCK), memory: (r * (N + p)) / 8 },
    matches: async (password) => isSame(await derive(password, salt, key.length, options), key),
  }
}

/** `promisify` has no type for the overload with options. */
const derive = (password: string, salt: string | Buffer, length: number, options: ScryptOptions) =>
  new Promise<Buffer>((resolve, reject) =>
    scrypt(password, salt, length, options, (error, key) => (error === null ? resolve(key) : reject(error))),
  )
