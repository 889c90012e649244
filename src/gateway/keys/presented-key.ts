import { hash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { CoherentCache } from '#kernel/db/coherent-cache.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { bearerOf } from '#kernel/http/presented-token.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { isApiKey } from '../caller/caller-role.ts'
import { fail } from '../errors.ts'
import type { ApiKey } from './keys.ts'
import { isSecretOf, NOBODY, parseKey } from './secret.ts'

/**
 * The API key of a request (gateway.md 3). A Bearer token counts as a key if it has a key's form or is the admin key, or if there is no
 * other key. Together with another key, or on clients with row-level security, it may be a session token.
 */
export function presentedKey(
  request: FastifyRequest,
  isAdminKey: (text: string) => boolean,
  hasSessions: boolean,
): string | undefined {
  const { headers } = request
  const { api_key: inQuery } = request.query as { api_key?: unknown } // any query string string
  const plain = onlyOf(
    headers[HEADER.serviceKey],
    headers[HEADER.apiKey],
    headers[HEADER.apiKeyAlias],
    inQuery,
  )
  const bearer = bearerOf(request)
  const mayBeSession = plain !== undefined || hasSessions
  const bearerCounts = bearer !== undefined && (!mayBeSession || isApiKey(bearer) || isAdminKey(bearer))
  return bearerCounts ? onlyOf(plain, bearer) : plain
}

/** The one text among them, which may be given several times. */
function onlyOf(...given: readonly unknown[]): string | undefined {
  let only: string | undefined
  for (const text of given) {
    if (Array.isArray(text)) only = onlyOf(only, ...text)
    else if (typeof text === 'string' && text !== '' && text !== only) {
      if (only !== undefined) throw fail('ambiguous_api_key')
      only = text
    }
  }
  return only
}

export type ProvenKey = {
  readonly key: ApiKey
  /** Expiry of the key, or of its previous secret if that was sent. Null: never. */
  readonly until: Date | null
}

export async function provenKey(
  kernel: Kernel,
  keys: CoherentCache<ApiKey>,
  presented: string,
): Promise<ProvenKey> {
  const text = parseKey(presented)
  const found = text === undefined ? undefined : await lookUp(keys, text.publicId)
  const isCurrent = isSecretOf(found ?? NOBODY, text?.secret ?? '')
  if (found === undefined || !(isCurrent || isPrevious(found, text?.secret ?? '', kernel.now()))) {
    throw fail('invalid_api_key')
  }
  if (!found.isActive) throw fail('inactive_api_key')
  if (found.expiresAt !== null && found.expiresAt <= kernel.now()) throw fail('expired_api_key')
  return {
    key: found,
    until: isCurrent ? found.expiresAt : earlier(found.expiresAt, found.previousExpiresAt),
  }
}

const earlier = (one: Date | null, other: Date | null): Date | null =>
  one === null || (other !== null && other < one) ? other : one

async function lookUp(keys: CoherentCache<ApiKey>, publicId: string): Promise<ApiKey | undefined> {
  try {
    return keys.peek(publicId) ?? (await keys.get(publicId))
  } catch (cause) {
    // Deny access if the store fails, for any reason.
    throw fail('api_key_validation_unavailable', { cause })
  }
}

/** Whether the secret is the one before a rotation, within its grace period. */
function isPrevious(key: ApiKey, secret: string, now: Date): boolean {
  const { previousSalt: salt, previousSecretHash: secretHash, previousExpiresAt } = key
  if (salt === null || secretHash === null || previousExpiresAt === null) return false
  return previousExpiresAt > now && isSecretOf({ salt, secretHash }, secret)
}

/** Returns a constant-time comparison with the secret, for texts of any length. The secret is hashed once. */
export function sameAs(secret: string): (text: string) => boolean {
  const digest = hash('sha256', secret, 'buffer')
  return (text) => timingSafeEqual(hash('sha256', text, 'buffer'), digest)
}
