import type { FastifyRequest } from 'fastify'
import type { LiveSession } from '#identity/live-sessions.ts'
import { recordFailure } from '#kernel/audit/record-failure.ts'
import { Failure } from '#kernel/errors.ts'
import { type Kernel, withOrigin } from '#kernel/kernel.ts'
import { ADMIN_REFUSALS } from '../admin/permissions.ts'
import { ORGANIZATION_REFUSALS } from '../organization/roles.ts'
import { originOf } from './origin.ts'

/**
 * An `onError` hook: an act that a role refuses leaves a row, which an operator looks for after an attack. Its target is the account that
 * tried. The named user or organization is not shown: invented ids would add a row each.
 */
export const recordRefusal = async (kernel: Kernel, request: FastifyRequest, error: Error): Promise<void> => {
  const { knownCaller: caller, method } = request
  if (caller === undefined || !(error instanceof Failure)) return
  const { code: reason } = error
  if (ADMIN_REFUSALS.has(reason))
    await recordRefusedAct(kernel, request, caller, { action: 'admin_act.failed', reason })
  // A page that shows an organization asks for what some members may not see.
  else if (ORGANIZATION_REFUSALS.has(reason) && method !== 'GET')
    await recordRefusedAct(kernel, request, caller, { action: 'organization_act.failed', reason })
}

type RefusedAct = {
  readonly action: 'admin_act.failed' | 'impersonated_act.failed' | 'organization_act.failed'
  readonly reason: string
}

/** Access is judged before the limits, so that a refused request takes from the bucket here. Beyond the limit it writes nothing. */
export async function recordRefusedAct(
  kernel: Kernel,
  request: FastifyRequest,
  live: LiveSession,
  { action, reason }: RefusedAct,
): Promise<void> {
  if (!(await kernel.limits.allows('default', request.clientAddress))) return
  await recordFailure(withOrigin(kernel, originOf(request, live)), action, { targetId: live.user.id, reason })
}
