import type { Insertable } from 'kysely'
import type { AuditEventTable } from '../db/tables.ts'
import type { Kernel } from '../kernel.ts'
import { uuidv7 } from '../random.ts'
import { ACTIONS, type Action } from './actions.ts'

/** One act, with ids only: no address, name, token or text of a person. */
export type Act = {
  readonly targetId: string
  /** The user who acts, where a password or a ticket proves it and no session. Default: the actor of the kernel's origin. */
  readonly actorId?: string
  readonly organizationId?: string
  readonly clientName?: string
  /** Number of things that it ended, if that is not one. */
  readonly count?: number
  /** More ids, and words of our own. */
  readonly details?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>
}

/** Of a kernel or of a part of it. */
type Recorder = Pick<Kernel, 'db' | 'now' | 'random' | 'origin'>

/** Writes the act into the audit trail. Call it in the transaction that acts: if that is rolled back, no row remains. */
export async function recordAct(kernel: Recorder, action: Action, act: Act): Promise<void> {
  await kernel.db
    .insertInto('auditEvent')
    .values(auditRow(kernel, action, act))
    .execute()
}

/** The row of an act, for a statement that writes several. */
export function auditRow(
  { now, random, origin }: Pick<Recorder, 'now' | 'random' | 'origin'>,
  action: Action,
  act: Act,
): Insertable<AuditEventTable> {
  const occurredAt = now()
  return {
    id: uuidv7(occurredAt, random),
    occurredAt,
    actorId: act.actorId ?? origin.actorId,
    onBehalfOf: origin.onBehalfOf ?? null,
    action,
    targetType: ACTIONS[action],
    targetId: act.targetId,
    clientName: act.clientName ?? null,
    organizationId: act.organizationId ?? null,
    ipAddress: origin.ipAddress ?? null,
    userAgent: origin.userAgent?.slice(0, MAX_USER_AGENT) ?? null,
    requestId: origin.requestId ?? null,
    outcome: 'success',
    count: act.count ?? 1,
    details: JSON.stringify(act.details ?? {}),
  }
}

/** Characters that are kept, as in a session. */
const MAX_USER_AGENT = 512
