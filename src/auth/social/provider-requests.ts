import { type CircuitBreaker, createCircuitBreaker } from '#kernel/circuit-breaker.ts'
import { retryAfter } from '#kernel/http/failures.ts'
import { type OutboundAnswer, OutboundRefused, type OutboundRequest } from '#kernel/http/outbound/outbound.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createSemaphore } from '#kernel/semaphore.ts'
import { fail } from '../errors.ts'

/** Sends a request to a provider; throws PROVIDER_UNAVAILABLE when it gives no answer. */
export type ProviderRequests = (
  url: string,
  request: Omit<OutboundRequest, 'timeout' | 'maxBytes'>,
) => Promise<OutboundAnswer>

/** Milliseconds and bytes. */
const LIMITS = { timeout: 5_000, maxBytes: 1_024 * 1_024 }
const PLACES = 16
const QUEUE = { max: 64, patience: 5_000 }

const unavailable = (wait: number, cause?: unknown) =>
  fail('PROVIDER_UNAVAILABLE', { cause, headers: retryAfter(Math.max(1, Math.ceil(wait / 1_000))) })

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
    throw unavailable(breaker.wait(), error)
  }
  throw unavailable(breaker.wait())
}

/** Such a request has a control character in a header, like a token that a caller has given us. */
const isUnsendable = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'UND_ERR_INVALID_ARG'
