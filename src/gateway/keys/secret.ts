import { hash, timingSafeEqual } from 'node:crypto'
import type { Random } from '#kernel/random.ts'

/** `svc_{16 hex}.{43 base64url}`: the first part finds the key, the second proves it. */
export type KeyText = { readonly publicId: string; readonly secret: string }

export function parseKey(text: string): KeyText | undefined {
  const [, publicId, secret] = /^svc_([0-9a-f]{16})\.([A-Za-z0-9_-]{43})$/.exec(text) ?? []
  return publicId === undefined || secret === undefined ? undefined : { publicId, secret }
}

export type Sealed = { readonly salt: Buffer; readonly secretHash: Buffer }

/** A new secret and what is stored of it. */
export function newSecret(random: Random): Sealed & { readonly secret: string } {
  const secret = random(32).toString('base64url')
  const salt = random(16)
  return { secret, salt, secretHash: hashSecret(salt, secret) }
}

/**
 * SHA-256 of `salt:secret`: the secret is 256 random bits, so a slow hash would protect nothing more. By way of hex, because Node
 * takes four times as long to give a buffer.
 */
const hashSecret = (salt: Buffer, secret: string): Buffer =>
  Buffer.from(hash('sha256', `${salt.toString('base64url')}:${secret}`), 'hex')

export const isSecretOf = ({ salt, secretHash }: Sealed, secret: string): boolean =>
  timingSafeEqual(hashSecret(salt, secret), secretHash)

/** What an unknown public id is compared with, so that it costs what a wrong secret costs. */
export const NOBODY: Sealed = { salt: Buffer.alloc(16), secretHash: Buffer.alloc(32) }
