import { recordFailure } from '#kernel/audit/record-failure.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** Runs a sign-in that no password proves. If it is refused, the audit trail shows that, with the account if there is one. */
export async function recordingRefusal<T>(
  kernel: Kernel,
  findTarget: () => Promise<string | undefined>,
  signIn: () => Promise<T>,
): Promise<T> {
  try {
    return await signIn()
  } catch (error) {
    if (error instanceof Failure && isRefusal(error))
      await recordFailure(kernel, 'sign_in.failed', { targetId: await findTarget(), reason: error.code })
    throw error
  }
}

/** A provider that does not answer, or a limit, has judged nothing. The refusal of a hook has a row of its own (hooks/refusals.ts). */
const isRefusal = ({ status, code }: Failure): boolean =>
  status < 500 && status !== 429 && code !== 'REFUSED_BY_HOOK'
