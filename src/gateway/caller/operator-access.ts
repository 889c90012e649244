import type { FastifyRequest } from 'fastify'
import type { OperatorRight } from '#kernel/config/sections/auth-admin.ts'
import type { Access } from '#kernel/http/access.ts'
import { asksToOperate } from '#kernel/http/session-cookie.ts'
import { fail, REFUSED } from '../errors.ts'
import type { AdminKey } from '../keys/admin-key.ts'
import { presentedKey } from '../keys/presented-key.ts'
import { lackingInRole } from './caller-rights.ts'
import { isApiKey } from './caller-role.ts'
import type { Grant } from './grant.ts'
import type { OperatorDemand } from './operator-proof.ts'

declare module 'fastify' {
  interface FastifyRequest {
    isOperator: boolean
  }
}

export type OperatorAccess = {
  /** Requires the static admin key, or a session whose user's roles open these routes (gateway.md 3). */
  operator(right: OperatorRight, more?: OperatorOptions): Access
  /** Requires the admin key, such a session, or `metrics.token`. */
  readonly metrics: Access
  /** Open to all. Sets `request.isOperator` for callers with one of these. */
  readonly knowsOperator: Access
}

export type OperatorOptions = {
  /** A session must have shown a proof within ten minutes. Every DELETE demands it. */
  readonly isProven?: boolean
}

const SESSION_SECURITY = [
  { operatorSession: [], sessionToken: [] },
  { operatorSession: [], sessionCookie: [] },
]
export const KEY_SECURITY = [{ apiKey: [] }, { apiKeyBearer: [] }, ...SESSION_SECURITY]
const ADMIN_SECURITY = [{ adminKey: [] }, ...KEY_SECURITY]

export function operatorAccess(
  operator: AdminKey,
  grantOf: (request: FastifyRequest) => Promise<Grant>,
): OperatorAccess {
  const requireOperator = async (request: FastifyRequest, demand: OperatorDemand): Promise<void> => {
    if (asksToOperate(request)) return requireSession(request, await grantOf(request), demand)
    const isProven = await operator.provesByHeader(request)
    if (isProven === true) return
    const { kind } = await grantOf(request)
    if (kind === 'key')
      throw fail('insufficient_rights', {
        hint: 'This requires the admin key: SERVICE_KEY_12, or the file admin-key in server.data_dir',
      })
    if (kind === 'none') throw fail(isProven === undefined ? 'api_key_required' : 'invalid_api_key')
  }
  const isOperator = async (request: FastifyRequest): Promise<boolean> => {
    if (asksToOperate(request)) return opens(await grantOf(request), 'metrics')
    if (await operator.provesScraper(request)) return true
    const isProven = await operator.provesByHeader(request)
    if (isProven === true) return true
    const presented = presentedKey(request, operator.isSame, false)
    // A client's key gives no rights here, so the key store is not queried: it may be the part that is broken.
    const isForeign = presented === undefined || isApiKey(presented)
    if (isForeign && isProven === undefined) return false
    if (!isForeign && (await operator.proves(request, presented))) return true
    throw fail('invalid_api_key')
  }
  return {
    operator: (right, { isProven = false } = {}) => ({
      name: `admin key, or session with operator: ${right}`,
      security: ADMIN_SECURITY,
      failures: REFUSED.withKey,
      authorize: (request) =>
        requireOperator(request, { right, isProven: isProven || request.method === 'DELETE' }),
    }),
    metrics: {
      name: 'admin key, metrics token, or session with operator: metrics',
      security: ADMIN_SECURITY,
      failures: REFUSED.withKey,
      async authorize(request) {
        if (asksToOperate(request) || !(await operator.provesScraper(request)))
          await requireOperator(request, { right: 'metrics', isProven: false })
      },
    },
    knowsOperator: {
      name: 'open (more details for operators)',
      security: [...ADMIN_SECURITY, {}],
      failures: REFUSED.withKey,
      async authorize(request) {
        request.isOperator = await isOperator(request)
      },
    },
  }
}

const opens = (grant: Grant, right: OperatorRight): boolean =>
  grant.kind === 'session' && grant.operator.includes(right)

/** The request keeps the demand, for the transaction that acts, and the grant, which is asked for again when the body has arrived. */
function requireSession(request: FastifyRequest, grant: Grant, demand: OperatorDemand): void {
  if (grant.kind !== 'session' || !opens(grant, demand.right))
    throw lackingInRole([`operator: ${demand.right}`])
  if (demand.isProven && !grant.isProven)
    throw fail('session_not_fresh', { details: { accepts: grant.accepts } })
  request.operatorDemand = demand
  request.grant = grant
}
