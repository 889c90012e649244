import { hash } from 'node:crypto'
import { networkOf } from '../http/limits/limits.ts'
import type { Kernel } from '../kernel.ts'
import { uuidv7 } from '../random.ts'
import type { Action } from './actions.ts'
import { auditRecord } from './record-act.ts'

type FailedAct = {
  /** Undefined: no such account. */
  readonly targetId: string | undefined
  /** A word of ours. */
  readonly reason: string
  /** The hook of the settings that has refused. */
  readonly hook?: string
}

/**
 * Counts a failure in the audit trail, outside of the transaction that failed: one row a minute for each account, reason, actor and
 * address (IPv6: its /64), so that a flood of guesses writes few rows. All unknown accounts of an address share a row. An existing and an
 * unknown account cost the same statement. The id is made of the minute and a hash of these, so that the primary key finds the row.
 */
export async function recordFailure(
  kernel: Kernel,
  action: Extract<Action, `${string}.failed`>,
  { targetId, reason, hook }: FailedAct,
): Promise<void> {
  if (kernel.db.isTransaction) throw new Error('a failure is recorded outside of the transaction that failed')
  if (action === 'sign_in.failed') kernel.metrics.count('gatehouse_sign_ins_failed_total')
  const { actorId, ipAddress = '' } = kernel.origin
  const key = hash(
    'sha256',
    JSON.stringify([
      action,
      targetId,
      reason,
      actorId,
      networkOf(ipAddress),
      ...(hook === undefined ? [] : [hook]),
    ]),
    'buffer',
  )
  const minute = new Date(Math.floor(kernel.now().getTime() / MINUTE) * MINUTE)
  const act = {
    ...(targetId !== undefined && { targetId }),
    details: { reason, ...(hook !== undefined && { hook }) },
  }
  const id = uuidv7(minute, (bytes) => key.subarray(0, bytes))
  const record = auditRecord({ ...kernel, now: () => minute }, action, act, id)
  await kernel.db
    .insertInto('auditEvent')
    .values({ ...record, outcome: 'failure', details: JSON.stringify(record.details) })
    .onConflict((on) => on.column('id').doUpdateSet(({ eb }) => ({ count: eb('auditEvent.count', '+', 1) })))
    .execute()
}

const MINUTE = 60_000
