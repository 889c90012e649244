import type { JWTPayload } from 'jose'
import type { TrustedIssuer } from '#databases/drivers/driver.ts'
import { claimAt, isExact } from './claim-at.ts'
import { invalid } from './verify-jwt.ts'

/** The claims of a token for policies (gateway.md 19). */
export type JwtClaims = { readonly userId: string; readonly claims: string }

/**
 * The claims of a verified token. A user or an organization of this service has a UUID, so beside own sessions an issuer names none.
 * Throws jwt_invalid.
 */
export function jwtClaims(
  payload: JWTPayload,
  issuer: TrustedIssuer,
  { besideSessions }: { readonly besideSessions: boolean },
): JwtClaims {
  const { claims_map: map, role_claim, subject_prefix = '', organization_prefix = '' } = issuer
  const { user_id = 'sub', organization_id, organization_role, ...others } = map
  const claimOf = (name: string | undefined) => (name === undefined ? undefined : claimAt(payload, name))
  const idOf = (name: string, prefix: string, setting: string): string => {
    const id = `${prefix}${textOf(claimOf(name), name)}`
    if (besideSessions && isUuid(id))
      throw invalid(`${name} has the form of an id of this service: set ${setting} of the issuer`)
    return id
  }
  const userId = idOf(user_id, subject_prefix, 'subject_prefix')
  const organizationId = isAbsent(claimOf(organization_id))
    ? null
    : idOf(organization_id ?? '', organization_prefix, 'organization_prefix')
  const seen = {
    ...Object.fromEntries(
      Object.entries(others).flatMap(([claim, name]) => {
        const value = claimOf(name)
        return value === undefined ? [] : [[claim, value]]
      }),
    ),
    user_id: userId,
    session_id: null,
    role: wordsOf(claimOf(role_claim), role_claim),
    organization_id: organizationId,
    organization_role:
      organizationId === null ? null : wordsOf(claimOf(organization_role), organization_role),
    two_factor: hasSecondFactor(payload, issuer),
    impersonated_by: null,
  }
  expectStorable(seen, 0)
  return { userId, claims: JSON.stringify(seen) }
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null

/** Characters of an id (OpenID Connect Core 1.0, section 2). */
const MAX_ID = 255

function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string' || value === '' || value.length > MAX_ID || /\p{Cc}/u.test(value))
    throw invalid(`${name} is not a text of 1 to ${MAX_ID} characters`)
  return value
}

/** In every spelling that PostgreSQL reads: braces, and hyphens at other places. */
const isUuid = (text: string): boolean => /^[\da-f]{32}$/i.test(text.replace(/[{}-]/g, ''))

/** Roles, separated by commas as those of this service. */
function wordsOf(value: unknown, name = ''): string | null {
  if (isAbsent(value)) return null
  if (!Array.isArray(value)) return textOf(value, name)
  const words = value.map((word) => textOf(word, name))
  if (words.some((word) => word.includes(','))) throw invalid(`${name} has a comma in one of its texts`)
  return words.length === 0 ? null : words.join(',')
}

function hasSecondFactor(payload: JWTPayload, { two_factor: { claim, values } }: TrustedIssuer): boolean {
  const given = claimAt(payload, claim)
  const all: readonly unknown[] = Array.isArray(given) ? given : [given]
  return all.some((one) => typeof one === 'string' && values.includes(one))
}

/** Levels of a claim. */
const MAX_DEPTH = 16

/** PostgreSQL has no NUL character in texts, and refuses broken Unicode. */
function expectStorable(value: unknown, depth: number): void {
  if (typeof value === 'string') {
    if (value.includes('\0') || !value.isWellFormed())
      throw invalid('A claim has a NUL character or broken Unicode')
  } else if (typeof value === 'number') {
    if (!isExact(value)) throw invalid(`A claim has a number beyond ${Number.MAX_SAFE_INTEGER}`)
  } else if (typeof value === 'object' && value !== null) {
    if (depth === MAX_DEPTH) throw invalid('A claim is nested too deep')
    for (const [name, inner] of Object.entries(value)) {
      expectStorable(name, depth)
      expectStorable(inner, depth + 1)
    }
  }
}
