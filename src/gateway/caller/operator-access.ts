import type { FastifyRequest } from 'fastify'
import type { Access } from '#kernel/http/access.ts'
import { fail, REFUSED } from '../errors.ts'
import type { AdminKey } from '../keys/admin-key.ts'
import { presentedKey } from '../keys/presented-key.ts'
import { isApiKey } from './caller-role.ts'
import type { Grant } from './grant.ts'

declare module 'fastify' {
  interface FastifyRequest {
    isOperator: boolean
  }
}

export type OperatorAccess = {
  /** Requires the static admin key. */
  readonly admin: Access
  /** Requires the admin key or `metrics.token`. */
  readonly metrics: Access
  /** Open to all. Sets `request.isOperator` for callers with the admin key or the metrics token. */
  readonly knowsOperator: Access
}

export const KEY_SECURITY = [{ apiKey: [] }, { apiKeyBearer: [] }]
const ADMIN_SECURITY = [{ adminKey: [] }, ...KEY_SECURITY]

export function operatorAccess(
  operator: AdminKey,
  grantOf: (request: FastifyRequest) => Promise<Grant>,
): OperatorAccess {
  const requireAdmin = async (request: FastifyRequest): Promise<void> => {
    const isProven = await operator.provesByHeader(request)
    if (isProven === true) return
    const { kind } = await grantOf(request)
    if (kind === 'key') throw fail('insufficient_rights', { hint: 'This requires the static admin key' })
    if (kind === 'none') throw fail(isProven === undefined ? 'api_key_required' : 'invalid_api_key')
  }
  const isOperator = async (request: FastifyRequest): Promise<boolean> => {
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
    admin: {
      name: 'admin key',
      security: ADMIN_SECURITY,
      failures: REFUSED.withKey,
      authorize: requireAdmin,
    },
    metrics: {
      name: 'admin key or metrics token',
      security: ADMIN_SECURITY,
      failures: REFUSED.withKey,
      async authorize(request) {
        if (!(await operator.provesScraper(request))) await requireAdmin(request)
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
