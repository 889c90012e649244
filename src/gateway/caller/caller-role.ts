import type { FastifyRequest } from 'fastify'
import type { Persona, RowLevelSecurity } from '#databases/drivers/driver.ts'
import type { SessionOfJwt } from '#identity/jwt/session-of-jwt.ts'
import type { LiveSession, Sessions } from '#identity/live-sessions.ts'
import { effectiveRole } from '#identity/permissions.ts'
import { hasSecondFactor, lacksSecondFactor } from '#identity/second-factor.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { isGet } from '#kernel/http/methods.ts'
import { crossSite } from '#kernel/http/origins.ts'
import { bearerOf, type PresentedToken, presentedToken, tokenOf } from '#kernel/http/presented-token.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

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
}

export const anonymous = ({ anonymousRole }: RowLevelSecurity): ActingAs => ({
  persona: { role: anonymousRole, claims: '{}' },
  isImpersonated: false,
  userId: undefined,
})

export function createPersonaLookup(
  kernel: Kernel,
  { sessions, sessionOfJwt }: { readonly sessions: Sessions; readonly sessionOfJwt: SessionOfJwt },
  presentedSession: SessionReader,
): PersonaLookup {
  /** A JWT is taken from headers only: no cookie of ours has one. */
  const find = async ({ token, by }: PresentedToken, address: string): Promise<LiveSession | undefined> =>
    (await sessions.find(token, address)) ?? (by === 'header' ? sessionOfJwt(token, address) : undefined)
  return async (request, { signedInRole }) => {
    const presented = presentedSession(request)
    if (presented === undefined) return undefined
    const live = await find(presented, request.clientAddress)
    if (live !== undefined && lacksSecondFactor(kernel.config, live)) throw fail('two_factor_required')
    if (live !== undefined) {
      const { impersonatedBy: adminId } = live.session
      const isImpersonated = adminId !== null
      request.impersonation = isImpersonated ? { adminId, userId: live.user.id } : undefined
      const claims = JSON.stringify(claimsOf(kernel, live))
      return {
        persona: { role: signedInRole, claims, readOnly: isImpersonated },
        isImpersonated,
        userId: adminId ?? live.user.id,
      }
    }
    // Count invalid tokens, to limit guessing.
    await kernel.limits.consume('default', request.clientAddress)
    throw fail('invalid_session')
  }
}

/** Claims for policies. They come from the session, never from the request. */
const claimsOf = (kernel: Kernel, { session, user, organizationRole, impersonator }: LiveSession) => ({
  user_id: user.id,
  session_id: session.id,
  role: effectiveRole(kernel, user),
  organization_id: session.activeOrganizationId,
  organization_role: organizationRole,
  two_factor: hasSecondFactor({ session, impersonator }),
  impersonated_by: session.impersonatedBy,
})

/** The session token, or the JWT of a session, that a request presents. Throws for two of them, and for a cookie that another site may have sent. */
type SessionReader = (request: FastifyRequest) => PresentedToken | undefined

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
  return (request) => {
    const presented = presentedToken(kernel.config, request, inHeader)
    const from =
      presented?.by === 'cookie' && !isGet(request) ? crossSite(kernel, request.headers) : undefined
    if (from !== undefined) throw fail(from === 'foreign' ? 'invalid_origin' : 'missing_or_null_origin')
    return presented
  }
}

/** Recognises API keys by their form. */
export const isApiKey = (text: string): boolean => text.startsWith('svc_')
