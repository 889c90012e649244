import { retryAfter } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { singleFlight } from '#kernel/single-flight.ts'
import { fail } from '../errors.ts'
import { ownFailure } from './ask-provider.ts'

type Document = {
  /** Of the provider. */
  readonly name: string
  /** For the log and the caller. */
  readonly subject: 'keys' | 'endpoints'
}

/** Milliseconds. */
const COOL_DOWN = 10_000

/**
 * Reads a document that a provider publishes: once for all concurrent callers, and not again for 10 s after an answer that cannot be
 * read. Else each sign-in would repeat the request. Without any answer the circuit of the provider decides (provider-requests.ts).
 */
export function createDocumentReader<T>(
  { now, log }: Pick<Kernel, 'now' | 'log'>,
  { name, subject }: Document,
  read: () => Promise<T>,
): () => Promise<T> {
  let failed: { readonly cause: unknown; readonly until: number } | undefined

  const refusal = (cause: unknown, until: number) =>
    fail('PROVIDER_UNAVAILABLE', {
      message: `The ${subject} of the provider cannot be read; try again shortly`,
      headers: retryAfter(Math.max(1, Math.ceil((until - now().getTime()) / 1_000))),
      cause,
    })
  const readOnce = singleFlight(async () => {
    try {
      return await read()
    } catch (cause) {
      const own = ownFailure(cause)
      if (own !== undefined) throw own
      log.warn(
        { event: 'provider_failed', provider: name, error: cause },
        `the ${subject} of the provider cannot be read`,
      )
      const until = now().getTime() + COOL_DOWN
      failed = { cause, until }
      throw refusal(cause, until)
    }
  })
  return async () => {
    if (failed !== undefined && now().getTime() < failed.until) throw refusal(failed.cause, failed.until)
    return readOnce()
  }
}
