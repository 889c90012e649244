import type { FastifyRequest } from 'fastify'
import type { Persona, RowLevelSecurity } from '#databases/drivers/driver.ts'
import type { SessionOfJwt } from '#identity/jwt/session-of-jwt.ts'
import type { LiveSession, Sessions } from '#identity/live-sessions.ts'
import { effectiveRole } from '#identity/permissions.ts'
import { hasSecondFactor, lacksSecondFactor } from '#identity/second-factor.ts'
import { OF_ISSUER } from '#kernel/audit/origin.ts'
import type { Failure } from '#kernel/errors.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { beyondReach } from '#kernel/http/origins.ts'
import { bearerOf, presentedToken, tokenOf } from '#kernel/http/presented-token.ts'
import { expectUser, sessionCookieName } from '#kernel/http/session-cookie.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { createJwtCallers, type JwtCaller } from '../row-level-security/jwt-callers.ts'
import { type TokenKind, tokenKind } from './token-kind.ts'

/**
 * Role and claims for row-level security (gateway.md 19) from the session that a request presents. Undefined: it presents none. Throws if
 * the session is invalid, so that it never counts as none.
 */
export type PersonaLookup = (
  request: FastifyRequest,
  roles: RowLevelSecurity,
) => Promise<ActingAs | undefined>

declare module 'fastify' {
  interface FastifyRequest {
    /** The session of the request is of an admin who acts as a user. For the audit trail (refused-acts.ts). */
    impersonation: Impersonation | undefined
  }
}

type Impersonation = { readonly adminId: string; readonly userId: string }

type ActingAs = {
  readonly persona: Persona
  readonly isImpersonated: boolean
  /** The user of the session, or the admin who acts as the user. */
  readonly userId: string | undefined
  /** Whether the request would be found to act as this again. False when memory cannot tell. */
  readonly isAsFound?: () => boolean
}

export const anonymous = ({ anonymousRole }: RowLevelSecurity): ActingAs => ({
  persona: { role: anonymousRole, claims: '{}' },
  isImpersonated: false,
  userId: undefined,
})

/** The client's own role. */
export const OWNER: Persona = { role: 'none', claims: '{}' }

export function createPersonaLookup(
  kernel: Kernel,
  { sessions, sessionOfJwt }: { readonly sessions: Sessions; readonly sessionOfJwt: SessionOfJwt },
  presentedSession: SessionReader,
): PersonaLookup {
  const jwtCallers = createJwtCallers(kernel)
  const asUser = createUserPersonas(kernel, sessions)
  return async (request, security) => {
    const { signedInRole } = security
    const presented = presentedSession(request, security)
    if (presented === undefined) return undefined
    const { token, kind } = presented
    // Let in before, as at the begin of a stream: guesses of others at the address do not end it.
    const address = request.gateway?.persona === undefined ? request.clientAddress : undefined
    if (kind === 'jwt') return ofJwt(await jwtCallers.find(token, security, address), security)
    if (security.refusesSessions === true)
      throw await refused(kernel, request, fail('invalid_session', OTHERS_ONLY))
    const find = kind === 'own jwt' ? sessionOfJwt : sessions.find
    const live = await find(token, address)
    if (live === 'expired') throw await refused(kernel, request, fail('jwt_expired'))
    if (live !== undefined) {
      expectUser(request, live.user.id)
      const acting = asUser(live, signedInRole)
      const { impersonatedBy: adminId } = live.session
      request.impersonation = adminId === null ? undefined : { adminId, userId: live.user.id }
      return acting
    }
    throw await refused(kernel, request, fail('invalid_session'))
  }
}

export const OTHERS_ONLY = { hint: 'This client accepts only JWTs of its issuers (own_sessions: false)' }

/** Counts invalid tokens, to limit guessing. */
async function refused(
  { limits }: Kernel,
  { clientAddress }: FastifyRequest,
  failure: Failure,
): Promise<Failure> {
  await limits.consume('default', clientAddress)
  return failure
}

/** The role of the database is never the issuer's choice. */
const ofJwt = ({ claims, userId, isAsFound }: JwtCaller, { signedInRole }: RowLevelSecurity): ActingAs => ({
  persona: { role: signedInRole, claims },
  isImpersonated: false,
  userId: `${OF_ISSUER}${userId}`,
  isAsFound,
})

/**
 * Judged once for a session as it was loaded, which any change of it, its user or its membership replaces (live-sessions.ts). Throws if the
 * session lacks its second factor.
 */
function createUserPersonas(
  kernel: Kernel,
  { isAsFound }: Sessions,
): (live: LiveSession, role: string) => ActingAs {
  const made = new WeakMap<LiveSession, ActingAs>()
  return (live, role) => {
    const known = made.get(live)
    if (known?.persona.role === role) return known
    if (lacksSecondFactor(kernel.config, live)) throw fail('two_factor_required')
    const acting = { ...actingAsUser(kernel, live, role), isAsFound: () => isAsFound(live) }
    made.set(live, acting)
    return acting
  }
}

export function actingAsUser(kernel: Kernel, live: LiveSession, role: string): ActingAs {
  const { impersonatedBy: adminId } = live.session
  const isImpersonated = adminId !== null
  const claims = JSON.stringify(claimsOf(kernel, live))
  return {
    persona: { role, claims, readOnly: isImpersonated },
    isImpersonated,
    userId: adminId ?? live.user.id,
  }
}

/** The session and the user that claims are made of. */
export type ClaimSource = Pick<LiveSession, 'user' | 'organizationRole' | 'impersonator'> & {
  readonly session: Pick<LiveSession['session'], 'activeOrganizationId' | 'impersonatedBy' | 'shown'> & {
    /** Null: of a session that there might be (gateway/see-as). */
    readonly id: string | null
  }
}

/** Claims for policies. They come from the session, never from the request. */
export const claimsOf = (kernel: Kernel, { session, user, organizationRole, impersonator }: ClaimSource) => ({
  user_id: user.id,
  session_id: session.id,
  role: effectiveRole(kernel, user),
  organization_id: session.activeOrganizationId,
  organization_role: organizationRole,
  two_factor: hasSecondFactor({ session, impersonator }),
  impersonated_by: session.impersonatedBy,
  is_anonymous: user.isAnonymous,
})

/**
 * The session token that a request presents, the JWT of a session, or the JWT of an issuer. Throws for two of them, and for a cookie that
 * another site may have sent.
 */
type SessionReader = (
  request: FastifyRequest,
  security: RowLevelSecurity,
) => { readonly token: string; readonly kind: TokenKind } | undefined

export function createSessionReader(kernel: Kernel, isAdminKey: (text: string) => boolean): SessionReader {
  const inHeader = (request: FastifyRequest): string | undefined => {
    const bearer = bearerOf(request)
    // It may be the API key instead.
    const ofBearer = bearer === undefined || isApiKey(bearer) || isAdminKey(bearer) ? undefined : bearer
    const { [HEADER.sessionToken]: plain, [HEADER.sessionBearer]: alias } = request.headers
    const given = [tokenOf(plain), tokenOf(alias), ofBearer]
    const [token, other] = new Set(given.filter((one) => one !== undefined))
    if (other !== undefined) throw fail('ambiguous_session')
    return token
  }
  return (request, security) => {
    const presented = presentedToken(kernel.config, request, inHeader)
    if (presented === undefined) return undefined
    const { token, by } = presented
    if (by === 'header') {
      const kind = tokenKind(kernel, token, security)
      if (kind === 'jwt') requireNoCookie(kernel, request, security)
      return { token, kind }
    }
    if (security.refusesSessions === true) return undefined
    const from = beyondReach(kernel, request)
    if (from !== undefined) throw fail(from === 'foreign' ? 'invalid_origin' : 'missing_or_null_origin')
    // No cookie of ours has a JWT.
    return { token, kind: 'session' }
  }
}

/** Where sessions count, one beside a JWT leaves open who the caller is. */
function requireNoCookie(
  { config }: Kernel,
  request: FastifyRequest,
  { refusesSessions = false }: RowLevelSecurity,
): void {
  if (!refusesSessions && (request.cookies[sessionCookieName(config, request)] ?? '') !== '')
    throw fail('ambiguous_session', { message: 'The request contains a session and a JWT' })
}

/** Recognises API keys by their form. */
export const isApiKey = (text: string): boolean => text.startsWith('svc_')
