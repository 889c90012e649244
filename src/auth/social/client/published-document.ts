import type { Kernel } from '#kernel/kernel.ts'
import { singleFlight } from '#kernel/single-flight.ts'
import { ownFailure, unavailable } from './requests.ts'

/** A document that a provider publishes, as this process has read it. */
export type PublishedDocument<T> = {
  /** Reads it again if it was read more than `age` milliseconds ago. */
  newerThan(age: number): Promise<T>
  /** The last one that was read. */
  last(): T | undefined
}

type Named = {
  /** Of the provider. */
  readonly name: string
  /** For the log and the caller. */
  readonly subject: 'keys' | 'endpoints'
}

/** Milliseconds. */
const COOL_DOWN = 10_000

/**
 * It is read once for all concurrent callers, and not again for 10 s after an answer that cannot be read. Else each sign-in would repeat
 * the request. Without any answer the circuit of the provider decides (requests.ts).
 */
export function createPublishedDocument<T>(
  { now, log }: Pick<Kernel, 'now' | 'log'>,
  { name, subject }: Named,
  read: () => Promise<T>,
): PublishedDocument<T> {
  let held: { readonly document: T; readonly since: number } | undefined
  let failed: { readonly cause: unknown; readonly until: number } | undefined
  const time = () => now().getTime()

  const refusal = ({ cause, until }: { readonly cause: unknown; readonly until: number }) =>
    unavailable(until - time(), {
      message: `The ${subject} of the provider cannot be read; try again shortly`,
      cause,
    })
  const readOnce = singleFlight(async () => {
    try {
      const document = await read()
      held = { document, since: time() }
      return document
    } catch (cause) {
      const failure = ownFailure(cause)
      if (failure !== undefined) throw failure
      log.warn(
        { event: 'provider_failed', provider: name, error: cause },
        `the ${subject} of the provider cannot be read`,
      )
      failed = { cause, until: time() + COOL_DOWN }
      throw refusal(failed)
    }
  })
  return {
    async newerThan(age) {
      if (held !== undefined && time() - held.since < age) return held.document
      if (failed !== undefined && time() < failed.until) throw refusal(failed)
      return readOnce()
    },
    last: () => held?.document,
  }
}
