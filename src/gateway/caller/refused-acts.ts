import type { FastifyRequest } from 'fastify'
import type { Action } from '#kernel/audit/actions.ts'
import { recordFailure } from '#kernel/audit/record-failure.ts'
import { Failure } from '#kernel/errors.ts'
import { type Kernel, withOrigin } from '#kernel/kernel.ts'

/**
 * An `onError` hook: a write that is refused because an admin acts as a user leaves a row, and so does all that the roles of a session's
 * user refuse in place of a key, as on the other surface. Its target is the account that tried. Beyond the limit of the address it writes
 * nothing.
 */
export async function recordRefusedAct(kernel: Kernel, request: FastifyRequest, error: Error): Promise<void> {
  const act = error instanceof Failure ? refusedAct(request, error.code) : undefined
  if (act === undefined) return
  const { clientAddress: ipAddress, headers, id: requestId } = request
  if (!(await kernel.limits.allows('default', ipAddress))) return
  const { action, actorId, onBehalfOf, reason } = act
  const origin = { actorId, onBehalfOf, ipAddress, userAgent: headers['user-agent'], requestId }
  await recordFailure(withOrigin(kernel, origin), action, { targetId: onBehalfOf ?? actorId, reason })
}

type RefusedAct = {
  readonly action: Extract<Action, 'impersonated_act.failed' | 'operator_act.failed'>
  readonly actorId: string
  readonly onBehalfOf?: string
  readonly reason: string
}

function refusedAct({ impersonation, operating }: FastifyRequest, reason: string): RefusedAct | undefined {
  if (reason === 'not_while_impersonating' && impersonation !== undefined) {
    const { adminId: actorId, userId: onBehalfOf } = impersonation
    return { action: 'impersonated_act.failed', actorId, onBehalfOf, reason }
  }
  if (reason === 'insufficient_rights' && operating !== undefined)
    return { action: 'operator_act.failed', actorId: operating.live.user.id, reason }
  return undefined
}
