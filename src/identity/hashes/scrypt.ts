import { type ScryptOptions, scrypt } from 'node:crypto'
import { fromBase64, isSame, SHORTEST_KEY, type StoredHash } from './hash.ts'

/** better-auth's `salt:key`, both in hex; its salt is the text, not the bytes that the hex stands for. */
const BETTER_AUTH = /^([0-9a-f]{8,128}):([0-9a-f]{128})$/i

/** @better-auth/utils, src/password: the same from better-auth 1.2 to 1.7. */
const BETTER_AUTH_COST = { N: 16_384, r: 16, p: 1 }

/** `$scrypt$ln=16,r=8,p=1$salt$key`, as PHC and passlib write it. */
const PHC =
  /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{0,128}={0,2})\$([A-Za-z0-9+/]{1,172}={0,2})$/

/** Milliseconds for a block of 128 bytes that is written once and read once. */
const BLOCK = 0.000_4

/** Milliseconds for 128 bytes that PBKDF2 makes at first and reads in the end. They count where N is small. */
const ENDS = 0.001

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
  if (N < 2 || r < 1 || p < 1 || key.length < SHORTEST_KEY) return undefined
  // What it needs, and half as much again for the library's own rows.
  const options = { ...parameters, maxmem: 192 * r * (N + p) }
  return {
    cost: { time: r * p * (N * BLOCK + ENDS), memory: (r * (N + p)) / 8 },
    matches: async (password) => isSame(await derive(password, salt, key.length, options), key),
  }
}

/** `promisify` does not know the form with options. */
const derive = (password: string, salt: string | Buffer, length: number, options: ScryptOptions) =>
  new Promise<Buffer>((resolve, reject) =>
    scrypt(password, salt, length, options, (error, key) => (error === null ? resolve(key) : reject(error))),
  )
