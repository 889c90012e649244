import { recordFailure } from '#kernel/audit/record-failure.ts'
import { HookProblem, HookRefusal } from '#kernel/hooks/answer.ts'
import { retryAfter } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

type Refused = {
  readonly action: 'sign_up.failed' | 'sign_in.failed' | 'token.failed'
  /** Undefined: there is no such user yet. */
  readonly targetId: string | undefined
}

/** The answer of `asking`. Its refusals become failures of the surface, and the audit trail shows those of a hook. */
export async function translatingRefusals<T>(
  kernel: Kernel,
  { action, targetId }: Refused,
  asking: () => Promise<T>,
): Promise<T> {
  try {
    return await asking()
  } catch (error) {
    if (error instanceof HookProblem) throw fail('HOOK_UNAVAILABLE', { headers: retryAfter(1), cause: error })
    if (!(error instanceof HookRefusal)) throw error
    const { hook, says } = error
    await recordFailure(kernel, action, { targetId, reason: 'REFUSED_BY_HOOK', hook })
    throw fail('REFUSED_BY_HOOK', says === undefined ? {} : { message: says })
  }
}
