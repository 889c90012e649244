import { decodeJwt, errors, type JWTVerifyGetKey, jwtVerify } from 'jose'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { fail } from '../../errors.ts'
import type { Claims, Provider } from '../providers/provider.ts'
import type { PublishedDocument } from './published-document.ts'

/** Signatures by public keys. Neither `none` nor an HMAC, whose key the client knows too. */
const ALGORITHMS = [
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519',
] // biome-ignore format: one line reads better

/** A nonce of an authorization request, by which this service knows the ID token that answers it. */
export function newNonce({ random, secrets }: Pick<Kernel, 'random' | 'secrets'>): string {
  const value = randomToken(random)
  return `${value}.${secrets.derive('id-token-nonce', value)}`
}

/**
 * Was the ID token issued to this service itself? The endpoints of a linked account give it out to any session, so that whoever shows it has
 * proven nothing by it.
 */
export function hasOwnNonce({ secrets }: Pick<Kernel, 'secrets'>, token: string): boolean {
  const { nonce } = claimsIn(token)
  const [value = '', tag, ...rest] = typeof nonce === 'string' ? nonce.split('.') : []
  const tags = (['current', 'previous'] as const).map((age) => secrets.derive('id-token-nonce', value, age))
  return tag !== undefined && rest.length === 0 && tags.includes(tag)
}

function claimsIn(token: string): Claims {
  try {
    return decodeJwt(token)
  } catch {
    return {}
  }
}

/** Seconds by which the clocks may differ. */
const TOLERANCE = 30

type TokenExpectation = {
  /** May contain `{tenantid}`. */
  readonly issuer: string
  /** One of them has to be the audience. */
  readonly audiences: readonly string[]
  /** Absent: the caller of the endpoint knows none. */
  readonly nonce: string | undefined
  readonly keys: JWTVerifyGetKey
}

/** The claims of an ID token (OpenID Connect Core 1.0, section 3.1.3.7). Throws INVALID_ID_TOKEN. */
export async function verifyIdToken(
  { now }: Pick<Kernel, 'now'>,
  token: string,
  { issuer, audiences, nonce, keys }: TokenExpectation,
): Promise<Claims> {
  try {
    const { payload } = await jwtVerify(token, keys, {
      issuer: issuerFor(issuer, decodeJwt(token)),
      audience: [...audiences],
      algorithms: ALGORITHMS,
      currentDate: now(),
      clockTolerance: TOLERANCE,
      requiredClaims: ['iss', 'sub', 'aud', 'exp', 'iat'],
    })
    if (nonce !== undefined && payload.nonce !== nonce) throw fail('INVALID_ID_TOKEN')
    return payload
  } catch (error) {
    throw error instanceof errors.JOSEError ? fail('INVALID_ID_TOKEN', { cause: error }) : error
  }
}

/** All directories of Microsoft share one discovery document, in which the id of the directory is left open. */
function issuerFor(issuer: string, { tid }: Claims): string {
  const isTenant = typeof tid === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(tid)
  return isTenant ? issuer.replace('{tenantid}', tid) : issuer
}

/**
 * A browser that the provider still knows is no proof. Whoever sits at it can take `prompt` and `max_age` out of the address, and then the
 * ID token tells no time of a sign-in, or an old one. So that time is required of an issuer that says that it tells it.
 */
export function expectSignedInSince(
  since: Date,
  claims: Claims,
  { provider, supported }: { readonly provider: Provider; readonly supported: unknown },
): void {
  const earliest = since.getTime() / 1_000 - TOLERANCE
  const isTold =
    provider.again?.max_age !== undefined && Array.isArray(supported) && supported.includes('auth_time')
  const times = [claims.iat, ...(isTold || claims.auth_time !== undefined ? [claims.auth_time] : [])]
  if (!times.every((time) => typeof time === 'number' && time >= earliest)) throw fail('NOT_SIGNED_IN_AGAIN')
}

/** Milliseconds. Keys that the provider has withdrawn are accepted for that long at most. */
const MAX_KEY_AGE = 600_000
/** Between two requests for keys, so that tokens with unknown keys cause no flood of them. */
const MIN_KEY_AGE = 10_000

/** The keys of an issuer. They are read again when they are old, and when a token names a key that is not among them. */
export const createKeySet =
  (keys: PublishedDocument<JWTVerifyGetKey>): JWTVerifyGetKey =>
  async (header, token) => {
    const find = await keys.newerThan(MAX_KEY_AGE)
    try {
      return await find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      return (await keys.newerThan(MIN_KEY_AGE))(header, token)
    }
  }
