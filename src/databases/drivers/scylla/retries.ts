import { policies } from 'cassandra-driver'

/** A node that starts takes no statements yet. */
const BOOTSTRAPPING = 0x1002

/**
 * What the library sends to another node by itself: only what the first one has surely not begun. A read that took too long, or
 * whose node was lost over it, would bring the next node down as well.
 */
export function retryPolicy(): policies.retry.RetryPolicy {
  const policy = new policies.retry.FallthroughRetryPolicy()
  const elsewhere = () => policy.retryResult(undefined as never, false) // the level as it was, which the types do not know
  policy.onUnavailable = (info) => (isFirstRead(info) ? elsewhere() : policy.rethrowResult())
  policy.onRequestError = (info, _consistency, error) =>
    isFirstRead(info) && 'code' in error && error.code === BOOTSTRAPPING
      ? elsewhere()
      : policy.rethrowResult()
  return policy
}

/** The last step of a conditional write can find too few nodes after the write was decided. */
const isFirstRead = ({ nbRetry, executionOptions }: policies.retry.OperationInfo): boolean =>
  nbRetry === 0 && executionOptions.isIdempotent()
