import { errors, type JWTHeaderParameters, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import type { TrustedIssuer } from '#databases/drivers/driver.ts'
import type { Failure } from '#kernel/errors.ts'
import { fail } from '../errors.ts'
import { claimAt, isExact } from './claim-at.ts'

/** Seconds by which the clock of an issuer may be ahead. */
const TOLERANCE = 30

/** A token that its issuer has signed for this service, and that is valid now. */
type VerifiedJwt = JWTPayload & { readonly exp: number; readonly iat: number }

/** Throws jwt_expired or jwt_invalid, with the reason; and what `keys` throws. */
export async function verifyJwt(
  token: string,
  {
    issuer,
    keys,
    now,
  }: { readonly issuer: TrustedIssuer; readonly keys: JWTVerifyGetKey; readonly now: Date },
): Promise<VerifiedJwt> {
  const { payload, protectedHeader } = await explained(() =>
    jwtVerify(token, keys, {
      issuer: issuer.issuer,
      algorithms: [...issuer.algorithms],
      ...(issuer.audience.length > 0 && { audience: [...issuer.audience] }),
      requiredClaims: ['exp', 'iat'],
      currentDate: now,
      clockTolerance: TOLERANCE,
    }),
  )
  const { exp, iat } = payload
  if (exp === undefined || iat === undefined) throw invalid('exp and iat are required')
  // The tolerance is for clocks that are ahead: what has ended has ended.
  if (exp * 1_000 <= now.getTime()) throw fail('jwt_expired')
  expectLifetime({ exp, iat }, issuer, now)
  expectType(protectedHeader, issuer)
  expectAccessToken(payload, issuer)
  expectAuthorizedParty(payload, issuer)
  expectRequiredClaims(payload, issuer)
  return { ...payload, exp, iat }
}

export const invalid = (hint: string, cause?: unknown): Failure => fail('jwt_invalid', { hint, cause })

/** Keys of an issuer that cannot be used, such as short ones of RSA, are a TypeError, and a DOMException of WebCrypto. */
async function explained<T>(verify: () => Promise<T>): Promise<T> {
  try {
    return await verify()
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw fail('jwt_expired', { cause: error })
    if (error instanceof DOMException)
      throw invalid('The key that the issuer publishes cannot be used', error)
    if (error instanceof errors.JOSEError || error instanceof TypeError) throw invalid(error.message, error)
    throw error
  }
}

function expectLifetime(
  { exp, iat }: Pick<VerifiedJwt, 'exp' | 'iat'>,
  { max_lifetime }: TrustedIssuer,
  now: Date,
): void {
  if (iat * 1_000 > now.getTime() + TOLERANCE * 1_000) throw invalid('iat is in the future')
  if ((exp - iat) * 1_000 > max_lifetime)
    throw invalid('The time from iat to exp is longer than max_lifetime')
}

/** Types of access tokens (RFC 9068, section 2.1). Tokens for other uses have a type of their own (RFC 8725, section 3.11). */
const USUAL_TYPES: readonly string[] = ['jwt', 'at+jwt']

function expectType({ typ }: JWTHeaderParameters, { typ: wanted }: TrustedIssuer): void {
  if (typ === undefined && wanted === undefined) return
  const given = typeof typ === 'string' ? typeName(typ) : undefined
  const isRight =
    given !== undefined && (wanted === undefined ? USUAL_TYPES.includes(given) : given === typeName(wanted))
  if (!isRight) throw invalid(`The header typ is not ${wanted ?? 'that of an access token'}`)
}

/** As media types are compared (RFC 7515, section 4.1.9). */
const typeName = (typ: string): string => typ.toLowerCase().replace(/^application\//, '')

/** Cognito tells ID tokens and access tokens apart by `token_use`. */
function expectAccessToken(
  { token_use: use }: JWTPayload,
  { required_claims: required }: TrustedIssuer,
): void {
  if (use !== undefined && use !== 'access' && required.token_use === undefined)
    throw invalid('token_use is not access')
}

/** `azp` of OpenID Connect, `client_id` of RFC 9068. */
function expectAuthorizedParty(
  { azp, client_id }: JWTPayload,
  { authorized_parties: parties }: TrustedIssuer,
): void {
  if (parties.length === 0) return
  const given = [azp, client_id].filter((party) => party !== undefined)
  const isAuthorized = (party: unknown) => typeof party === 'string' && parties.includes(party)
  if (given.length === 0 || !given.every(isAuthorized))
    throw invalid('azp or client_id is not one of authorized_parties')
}

function expectRequiredClaims(payload: JWTPayload, { required_claims: required }: TrustedIssuer): void {
  for (const [name, value] of Object.entries(required))
    if (!contains(claimAt(payload, name), value))
      throw invalid(`The claim ${name} does not have the required value`)
}

/** A text is also a list, separated by spaces, such as `scope` (RFC 8693, section 4.2). */
function contains(given: unknown, value: string): boolean {
  if (Array.isArray(given)) return given.includes(value)
  if (typeof given === 'string') return given === value || given.split(' ').includes(value)
  return (typeof given === 'boolean' || isExact(given)) && String(given) === value
}
