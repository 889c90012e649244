import { AuthorizationResponseError } from 'openid-client'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

/** Every failure of the provider, or of a library that checks its answers, becomes this one; the log has the reason. */
export async function askProvider<T>(
  { log }: Pick<Kernel, 'log'>,
  { name }: { readonly name: string },
  code:
    | 'INVALID_CODE'
    | 'UNABLE_TO_GET_USER_INFO'
    | 'PROVIDER_UNAVAILABLE'
    | 'FAILED_TO_REFRESH_ACCESS_TOKEN',
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const own = ownFailure(error)
    if (own !== undefined) throw own
    if (error instanceof AuthorizationResponseError)
      throw fail('PROVIDER_REFUSED', { details: { error: error.error } })
    log.warn({ event: 'provider_failed', provider: name, error }, 'the answer of the provider is refused')
    throw fail(code, { cause: error })
  }
}

/** The library wraps a failure of ours, like that of an open circuit. */
export function ownFailure(error: unknown): Failure | undefined {
  if (error instanceof Failure) return error
  return error instanceof Error && error.cause instanceof Failure ? error.cause : undefined
}
