import type { FastifyRequest } from 'fastify'
import { recordFailure } from '#kernel/audit/record-failure.ts'
import { Failure } from '#kernel/errors.ts'
import { type Kernel, withOrigin } from '#kernel/kernel.ts'

/**
 * An `onError` hook: a write that is refused because an admin acts as a user leaves a row, as on the other surface. Beyond the limit of the
 * address it writes nothing.
 */
export async function recordRefusedAct(kernel: Kernel, request: FastifyRequest, error: Error): Promise<void> {
  const { impersonation, clientAddress: ipAddress, headers, id: requestId } = request
  if (impersonation === undefined || !(error instanceof Failure) || error.code !== 'not_while_impersonating')
    return
  if (!(await kernel.limits.allows('default', ipAddress))) return
  const { adminId: actorId, userId } = impersonation
  const origin = { actorId, onBehalfOf: userId, ipAddress, userAgent: headers['user-agent'], requestId }
  await recordFailure(withOrigin(kernel, origin), 'impersonated_act.failed', {
    targetId: userId,
    reason: error.code,
  })
}
