import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errors, policies, types } from 'cassandra-driver'
import { connectFailureOf, failureOf } from '#databases/drivers/scylla/errors.ts'
import { createRetryPolicy } from '#databases/drivers/scylla/retries.ts'
import { Failure } from '#kernel/errors.ts'

const codeOf = (failure: unknown) => failure instanceof Failure && failure.code
const answered = (code: number, message: string) => new errors.ResponseError(code, message)

test('a ring that cannot read its roles and rights is unavailable, not a refusal', () => {
  const few = 'Cannot achieve consistency level QUORUM'
  const rights = answered(0x2100, `Unable to perform authorization of super-user permission: ${few}`)
  const refused = new errors.AuthenticationError(few)
  Object.assign(refused, { additionalInfo: answered(0x0100, `Unable to perform authentication: ${few}`) })
  for (const error of [rights, refused]) {
    assert.equal(codeOf(failureOf(error, false)), 'client_unavailable')
    const none = new errors.NoHostAvailableError({ '127.0.0.1:9042': error })
    assert.equal(codeOf(connectFailureOf(none)), 'client_unavailable')
  }
  const other = answered(0x2100, 'User ada has no SELECT permission on <table k.t> or any of its parents')
  assert.equal(codeOf(failureOf(other, false)), 'permission_denied')
  const wrong = Object.assign(new errors.AuthenticationError('no'), {
    additionalInfo: answered(0x0100, 'Provided username ada and/or password are incorrect'),
  })
  assert.equal(codeOf(connectFailureOf(wrong)), 'client_refused')
})

test('failed replicas are distinguished from failed statements', () => {
  const failed = (reason: string) =>
    failureOf(
      answered(
        0x1300,
        `Operation failed - received 1 responses and 1 failures: ${reason} from /10.0.0.2:7000`,
      ),
      false,
    )
  assert.equal(codeOf(failed('TIMEOUT')), 'client_unavailable')
  assert.equal(codeOf(failed('INDEX_NOT_AVAILABLE')), 'client_unavailable')
  assert.equal(codeOf(failed('READ_TOO_MANY_TOMBSTONES')), 'database_error')
})

test('a write is in doubt when too few nodes were found after it was decided, not before', () => {
  const { serial, localQuorum } = types.consistencies
  const hint = (consistencies: number, isWrite: boolean) => {
    const failure = failureOf(Object.assign(answered(0x1000, 'Cannot achieve'), { consistencies }), isWrite)
    assert.ok(failure instanceof Failure && failure.code === 'client_unavailable')
    return failure.hint
  }
  assert.match(String(hint(localQuorum, true)), /not known whether the write was done/)
  assert.deepEqual([hint(serial, true), hint(localQuorum, false)], [undefined, undefined])
})

test('only statements that no node has begun are sent to another node', () => {
  const policy = createRetryPolicy()
  const { retry, rethrow } = (
    policies.retry.RetryPolicy as unknown as { retryDecision: Record<string, number> }
  ).retryDecision
  const info = (isRead: boolean, nbRetry = 0) =>
    ({ query: '', nbRetry, executionOptions: { isIdempotent: () => isRead } }) as never
  const level = types.consistencies.localQuorum
  const late = new errors.OperationTimedOutError('late')
  const lost = Object.assign(new Error('Socket was closed'), { isSocketError: true })
  assert.equal(policy.onReadTimeout(info(true), level, 2, 2, false).decision, rethrow)
  assert.equal(policy.onWriteTimeout(info(true), level, 0, 2, 'BATCH_LOG').decision, rethrow)
  for (const error of [late, lost, answered(0x1001, 'overloaded')])
    assert.equal(policy.onRequestError(info(true), level, error).decision, rethrow, error.message)
  assert.equal(policy.onRequestError(info(true), level, answered(0x1002, 'starts')).decision, retry)
  assert.equal(policy.onUnavailable(info(true), level, 2, true).decision, retry)
  assert.equal(policy.onUnavailable(info(true, 1), level, 2, true).decision, rethrow)
  assert.equal(policy.onUnavailable(info(false), level, 2, true).decision, rethrow)
})
