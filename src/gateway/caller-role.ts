import type { FastifyRequest } from 'fastify'
import type { Persona, RowLevelSecurity } from '#databases/drivers/driver.ts'
import { effectiveRole } from '#identity/permissions.ts'
import { hasSecondFactor, lacksSecondFactor } from '#identity/second-factor.ts'
import type { LiveSession, Sessions } from '#identity/sessions.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { isGet } from '#kernel/http/methods.ts'
import { crossSite } from '#kernel/http/origins.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from './errors.ts'

/** Role and claims of a request for row-level security (gateway.md 19): from its session, or anonymous. */
export type PersonaLookup = (
  request: FastifyRequest,
  roles: RowLevelSecurity,
) => Promise<{ readonly persona: Persona; readonly isImpersonated: boolean }>

export function createPersonaLookup(kernel: Kernel, sessions: Sessions): PersonaLookup {
  return async (request, { anonymousRole, signedInRole }) => {
    const token = presentedSession(kernel, request)
    if (token === undefined) return { persona: { role: anonymousRole, claims: '{}' }, isImpersonated: false }
    const live = await sessions.find(token, request.clientAddress)
    if (live !== undefined && lacksSecondFactor(kernel.config, live)) throw fail('two_factor_required')
    if (live !== undefined) {
      const isImpersonated = live.session.impersonatedBy !== null
      const claims = JSON.stringify(claimsOf(kernel, live))
      return { persona: { role: signedInRole, claims, readOnly: isImpersonated }, isImpersonated }
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
  two_factor: hasSecondFactor({ user, session, impersonator }),
  impersonated_by: session.impersonatedBy,
})

/** A header takes precedence over the cookie, which pages of other sites can make a browser send. */
function presentedSession(kernel: Kernel, request: FastifyRequest): string | undefined {
  const { headers, cookies } = request
  const bearer = bearerOf(request)
  const given = [
    headers[HEADER.sessionToken],
    headers[HEADER.sessionBearer],
    bearer && !isApiKey(bearer) ? bearer : '',
  ]
    .map((value) => (typeof value === 'string' ? value.replace(/^bearer +/i, '').trim() : ''))
    .filter((token) => token !== '')
  const [token, other] = new Set(given)
  if (other !== undefined) throw fail('ambiguous_session')
  if (token !== undefined) return token
  const cookie = cookies[kernel.config.session.cookie_name]
  if (cookie === undefined || cookie === '') return undefined
  const from = isGet(request) ? undefined : crossSite(kernel, headers)
  if (from !== undefined) throw fail(from === 'foreign' ? 'invalid_origin' : 'missing_or_null_origin')
  return cookie
}

export const bearerOf = ({ headers }: FastifyRequest): string | undefined =>
  /^bearer\s+(.+)$/i.exec(headers.authorization ?? '')?.[1]?.trim()

/** Recognises API keys by their form. The admin key need not be recognised: its callers act as the client's own role, without a session. */
export const isApiKey = (text: string): boolean => text.startsWith('svc_')
