import type { FastifyRequest } from 'fastify'
import type { LiveSession } from '#identity/live-sessions.ts'
import { ANONYMOUS } from '#kernel/audit/origin.ts'
import { type Kernel, withOrigin } from '#kernel/kernel.ts'

/** The kernel for a verb: the audit trail shows the user of the session, or `anonymous` without one. */
export const kernelAs = (
  kernel: Kernel,
  live: LiveSession | undefined,
  { clientAddress: ipAddress, headers, id: requestId }: FastifyRequest,
): Kernel =>
  withOrigin(kernel, {
    actorId: live?.session.impersonatedBy ?? live?.user.id ?? ANONYMOUS,
    onBehalfOf: live?.impersonator && live.user.id,
    ...{ ipAddress, userAgent: headers['user-agent'], requestId },
  })
