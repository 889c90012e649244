import { policies } from 'cassandra-driver'

/** A starting node takes no statements yet. */
const BOOTSTRAPPING = 0x1002

/**
 * The library sends a statement to another node only if the first one has certainly not begun it. A read that timed out or crashed its node
 * could crash the next one too.
 */
export function createRetryPolicy(): policies.retry.RetryPolicy {
  const policy = new policies.retry.FallthroughRetryPolicy()
  const elsewhere = () => policy.retryResult(undefined as never, false) // the same consistency level, which the types do not know
  policy.onUnavailable = (info) => (isFirstRead(info) ? elsewhere() : policy.rethrowResult())
  policy.onRequestError = (info, _consistency, error) =>
    isFirstRead(info) && 'code' in error && error.code === BOOTSTRAPPING
      ? elsewhere()
      : policy.rethrowResult()
  return policy
}

/** The last step of a conditional write can fail with too few nodes after the write was decided. */
const isFirstRead = ({ nbRetry, executionOptions }: policies.retry.OperationInfo): boolean =>
  nbRetry === 0 && executionOptions.isIdempotent()
