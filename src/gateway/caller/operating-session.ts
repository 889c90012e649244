import type { FastifyRequest } from 'fastify'
import type { LiveSession, Sessions } from '#identity/live-sessions.ts'
import { gatewayRightsOf, operatorRightsOf } from '#identity/permissions.ts'
import { acceptedProofs, isWithin, provenAt, RECENT } from '#identity/recent-proof.ts'
import { lacksSecondFactor } from '#identity/second-factor.ts'
import { findStanding } from '#identity/standing.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { beyondOwnPages } from '#kernel/http/origins.ts'
import { presentedToken } from '#kernel/http/presented-token.ts'
import { expectUser } from '#kernel/http/session-cookie.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import type { SessionGrant } from './grant.ts'

/** A session that acts by the rights of its user's roles, in place of a key (gateway.md 3). */
type OperatingSession = {
  readonly live: LiveSession
  readonly token: string
  /** Of its last proof. */
  readonly provenAt: Date | null
  readonly accepts: readonly string[]
  /** During a check of an answer that is being sent: whether it was proven when that began. */
  readonly wasProven?: boolean | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    operating: OperatingSession | undefined
  }
}

/** Determines the grant of a request that asks to operate. Throws when it has no session that may. */
export type SessionGrants = (request: FastifyRequest) => Promise<SessionGrant>

export const createSessionGrants =
  (kernel: Kernel, sessions: Sessions): SessionGrants =>
  async (request) => {
    refuseOthers(request)
    const token = sessionToken(kernel, request)
    if (token === undefined) throw fail('session_required')
    // A session that has operated in this request guesses nothing.
    const address = request.operating === undefined ? request.clientAddress : undefined
    const live = await sessions.find(token, address)
    if (live === undefined) {
      // Count invalid tokens, to limit guessing.
      await kernel.limits.consume('default', request.clientAddress)
      throw fail('invalid_session')
    }
    expectUser(request, live.user.id)
    refuseRestricted(kernel, request, live)
    const known = request.operating
    request.operating =
      known?.live === live ? known : { ...known, ...(await proven(kernel, { live, token })) }
    return grantOf(kernel, request.operating)
  }

/**
 * Runs a check of an answer that is being sent. The proof was asked for when it began, and may get older than ten minutes; session and rights
 * are asked for as before. Only this check goes without the proof, whatever else the request does.
 */
export async function withoutNewProof<T>(
  request: FastifyRequest,
  { isProven: wasProven }: SessionGrant,
  check: () => Promise<T> | T,
): Promise<T> {
  if (request.operating !== undefined) request.operating = { ...request.operating, wasProven }
  try {
    return await check()
  } finally {
    if (request.operating !== undefined) request.operating = { ...request.operating, wasProven: undefined }
  }
}

/** A key or a second session beside it would leave open who acts. */
function refuseOthers({ headers, query }: FastifyRequest): void {
  const { api_key: inQuery } = query as { api_key?: unknown } // any query string string
  const keys = [HEADER.serviceKey, HEADER.apiKey, HEADER.apiKeyAlias, HEADER.adminKey]
  if (inQuery !== undefined || keys.some((name) => headers[name] !== undefined))
    throw fail('ambiguous_api_key', {
      message: `With ${HEADER.serviceSession} the session acts in place of a key, and the request contains a key too`,
      hint: `Leave out the key, or ${HEADER.serviceSession}`,
    })
  if ([HEADER.sessionToken, HEADER.sessionBearer].some((name) => headers[name] !== undefined))
    throw fail('ambiguous_session', {
      message: `With ${HEADER.serviceSession} the session comes as Authorization: Bearer, or by the cookie of a sign-in with that header`,
    })
}

/** A Bearer token is never read as a key here. */
function sessionToken(kernel: Kernel, request: FastifyRequest): string | undefined {
  const presented = presentedToken(kernel.config, request)
  const from = presented?.by === 'cookie' ? beyondOwnPages(kernel, request) : undefined
  if (from !== undefined)
    throw fail(from === 'foreign' ? 'invalid_origin' : 'missing_or_null_origin', {
      message: `With ${HEADER.serviceSession} a cookie counts from pages of server.public_url only`,
      hint: 'Send the token as Authorization: Bearer',
    })
  return presented?.token
}

function refuseRestricted(kernel: Kernel, request: FastifyRequest, live: LiveSession): void {
  const { session, user } = live
  if (session.impersonatedBy !== null) {
    request.impersonation = { adminId: session.impersonatedBy, userId: user.id }
    throw fail('not_while_impersonating', { message: 'An impersonated session does not operate' })
  }
  if (lacksSecondFactor(kernel.config, live)) throw fail('two_factor_required')
}

async function proven(
  { db, config }: Kernel,
  session: Pick<OperatingSession, 'live' | 'token'>,
): Promise<OperatingSession> {
  const standing = await findStanding(db, session.live.session.id)
  if (standing === undefined) throw fail('invalid_session')
  return { ...session, provenAt: provenAt(standing), accepts: acceptedProofs(config, standing) }
}

function grantOf(
  kernel: Kernel,
  { live: { user }, provenAt: at, accepts, wasProven }: OperatingSession,
): SessionGrant {
  const [operator, gateway] = [operatorRightsOf(kernel, user), gatewayRightsOf(kernel, user)]
  if (operator.length === 0 && gateway.size === 0)
    throw fail('insufficient_rights', {
      message: 'The roles of the user have no rights on the gateway',
      hint: 'An operator gives a role rights by auth.admin.roles',
    })
  const isProven = wasProven ?? isWithin(kernel, at, RECENT)
  return { kind: 'session', userId: user.id, operator, gateway, isProven, accepts }
}
