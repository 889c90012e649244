import { AuthorizationResponseError } from 'openid-client'
import { type CircuitBreaker, createCircuitBreaker } from '#kernel/circuit-breaker.ts'
import { Failure } from '#kernel/errors.ts'
import { retryAfter } from '#kernel/http/failures.ts'
import { type OutboundAnswer, OutboundRefused, type OutboundRequest } from '#kernel/http/outbound/outbound.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createSemaphore } from '#kernel/semaphore.ts'
import { fail } from '../../errors.ts'

/** Sends a request to a provider; throws PROVIDER_UNAVAILABLE when it gives no answer. */
export type ProviderRequests = (
  url: string,
  request: Omit<OutboundRequest, 'timeout' | 'maxBytes'>,
) => Promise<OutboundAnswer>

/** Milliseconds and bytes. */
const LIMITS = { timeout: 5_000, maxBytes: 1_024 * 1_024 }
const PLACES = 16
const QUEUE = { max: 64, patience: 5_000 }

/** For a caller who may try again after so many milliseconds. */
export const unavailable = (
  wait: number,
  more: { readonly message?: string; readonly cause?: unknown } = {},
): Failure =>
  fail('PROVIDER_UNAVAILABLE', { ...more, headers: retryAfter(Math.max(1, Math.ceil(wait / 1_000))) })

/**
 * Requests to one provider, by the rules of outbound requests. A provider that hangs holds a bounded number of callers for a bounded
 * time, and then its circuit opens: the next ones fail at once. Other providers have places and a circuit of their own.
 */
export function createProviderRequests(
  kernel: Pick<Kernel, 'outbound' | 'log'>,
  name: string,
): ProviderRequests {
  const semaphore = createSemaphore(PLACES, { ...QUEUE, refusal: () => unavailable(QUEUE.patience) })
  const breaker = createCircuitBreaker(
    () => performance.now(),
    (wait) => unavailable(wait),
  )
  return async (url, request) => {
    if (breaker.state() === 'open') throw breaker.refusal()
    return semaphore.run(async () => {
      if (!breaker.allows()) throw breaker.refusal()
      return attempt(kernel, { name, breaker }, url, request)
    })
  }
}

async function attempt(
  { outbound, log }: Pick<Kernel, 'outbound' | 'log'>,
  { name, breaker }: { readonly name: string; readonly breaker: CircuitBreaker },
  url: string,
  { headers, ...request }: Parameters<ProviderRequests>[1],
): Promise<OutboundAnswer> {
  try {
    const sent = { ...headers, 'user-agent': 'gatehouse' }
    const answer = await outbound.send(url, { ...request, ...LIMITS, headers: sent })
    breaker.succeeded()
    if (answer.isWhole) return answer
    log.warn(
      { event: 'provider_failed', provider: name },
      `an answer of the provider is longer than ${LIMITS.maxBytes} bytes`,
    )
  } catch (error) {
    // Nothing was sent, which says nothing about the provider. Else one user's token could close it to everybody.
    if (error instanceof OutboundRefused || isUnsendable(error)) breaker.undecided()
    else breaker.failed()
    if (isUnsendable(error)) throw error
    log.warn({ event: 'provider_failed', provider: name, error }, 'the provider gave no answer')
    throw unavailable(breaker.wait(), { cause: error })
  }
  throw unavailable(breaker.wait())
}

/** Such a request has a control character in a header, like a token that a caller has given us. */
const isUnsendable = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'UND_ERR_INVALID_ARG'

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
    const failure = ownFailure(error)
    if (failure !== undefined) throw failure
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
