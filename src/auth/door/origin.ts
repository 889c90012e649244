import type { FastifyRequest } from 'fastify'
import type { LiveSession } from '#identity/live-sessions.ts'
import { ANONYMOUS, type Origin } from '#kernel/audit/origin.ts'

/** The origin of a request: the audit trail shows the user of the session, or `anonymous` without one. */
export const originOf = (
  { clientAddress: ipAddress, headers, id: requestId }: FastifyRequest,
  live: LiveSession | undefined,
): Origin => ({
  actorId: live?.session.impersonatedBy ?? live?.user.id ?? ANONYMOUS,
  onBehalfOf: live?.impersonator && live.user.id,
  ipAddress,
  userAgent: headers['user-agent'],
  requestId,
})
