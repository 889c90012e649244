import { hash, timingSafeEqual } from 'node:crypto'
import type { Random } from '#kernel/random.ts'

/** `svc_{16 hex}.{43 base64url}`: public id for the lookup, and secret. */
type KeyText = { readonly publicId: string; readonly secret: string }

export function parseKey(text: string): KeyText | undefined {
  const [, publicId, secret] = /^svc_([0-9a-f]{16})\.([A-Za-z0-9_-]{43})$/.exec(text) ?? []
  return publicId === undefined || secret === undefined ? undefined : { publicId, secret }
}

type SecretHash = { readonly salt: Buffer; readonly secretHash: Buffer }

/** Generates a secret with the salt and hash to store. */
export function newSecret(random: Random): SecretHash & { readonly secret: string } {
  const secret = random(32).toString('base64url')
  const salt = random(16)
  return { secret, salt, secretHash: hashSecret(salt, secret) }
}

/**
 * SHA-256 of `salt:secret`. The secret has 256 random bits, so a slow hash would not add protection. Via hex, because Node takes four times
 * as long to return a buffer.
 */
const hashSecret = (salt: Buffer, secret: string): Buffer =>
  Buffer.from(hash('sha256', `${salt.toString('base64url')}:${secret}`), 'hex')

export const isSecretOf = ({ salt, secretHash }: SecretHash, secret: string): boolean =>
  timingSafeEqual(hashSecret(salt, secret), secretHash)

/** Placeholder for unknown public ids, so that they take as long as a wrong secret. */
export const NOBODY: SecretHash = { salt: Buffer.alloc(16), secretHash: Buffer.alloc(32) }
