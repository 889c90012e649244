import type { Kernel } from '#kernel/kernel.ts'
import { type AttemptResult, attemptDelivery } from './attempt.ts'
import { createEndpoints, type Endpoint, UnreadableEndpoint } from './endpoint.ts'
import { type ClaimedDelivery, readBody } from './store.ts'

type ClaimedAttempt = { readonly result: AttemptResult; readonly url: string }

/** Undefined when there was none: the webhook is inactive by now, the lease too short, or the process stops. */
export type AttemptClaimed = (delivery: ClaimedDelivery) => Promise<ClaimedAttempt | undefined>

/** Milliseconds of the lease that must be left after the time of an attempt. */
const MIN_LEASE_LEFT = 2_000

/** Attempts deliveries with the webhook as it is then, until the signal aborts. */
export function createClaimedAttempts(kernel: Kernel, signal: AbortSignal): AttemptClaimed {
  const { db, now } = kernel
  const findEndpoint = createEndpoints(kernel)

  const isInTime = ({ claimedUntil }: ClaimedDelivery, { timeoutMs }: Endpoint): boolean =>
    now().getTime() + timeoutMs + MIN_LEASE_LEFT <= claimedUntil.getTime()

  return async (delivery) => {
    const { eventId: id } = delivery
    try {
      const endpoint = await findEndpoint(delivery.webhookId)
      if (endpoint === undefined || !endpoint.isActive || !isInTime(delivery, endpoint)) return undefined
      const body = delivery.body ?? (await readBody(db, id))
      const result = await attemptDelivery(kernel, endpoint, { id, body }, signal)
      return { result, url: endpoint.url }
    } catch (error) {
      if (signal.aborted) return undefined
      if (error instanceof UnreadableEndpoint) return { result: unsent(error.message), url: error.url }
      throw error
    }
  }
}

const unsent = (error: string): AttemptResult => ({
  isSuccess: false,
  responseStatus: null,
  responseBody: null,
  error,
  durationMs: 0,
  waitAsked: 0,
})
