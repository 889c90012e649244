import { type Insertable, sql } from 'kysely'
import { columnName } from '../db/column-name.ts'
import type { AuditEventTable } from '../db/tables.ts'
import type { Kernel } from '../kernel.ts'
import { UUID, uuidv7InOrder } from '../random.ts'
import { ACTIONS, type Action } from './actions.ts'

/** One act, with ids only: no address, name, token or text of a person. */
export type Act = {
  readonly targetId?: string
  readonly organizationId?: string
  readonly clientName?: string
  /** Number of things that it ended, if that is not one. */
  readonly count?: number
  /** More ids, and words of our own. */
  readonly details?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>
}

/** The part of a kernel that writing an act needs. */
export type Recorder = Pick<Kernel, 'db' | 'now' | 'random' | 'origin' | 'operator'>

/** Writes the act into the audit trail. Call it in the transaction that acts: if that is rolled back, no row remains. */
export async function recordAct(kernel: Recorder, action: Action, act: Act): Promise<void> {
  await recordActs(kernel, action, [act])
}

/** The same for several acts, in one statement. */
export async function recordActs(kernel: Recorder, action: Action, acts: readonly Act[]): Promise<void> {
  const records = acts.map((act) => auditRecord(kernel, action, act))
  await kernel.db
    .insertInto('auditEvent')
    .values(records.map((record) => ({ ...record, details: JSON.stringify(record.details) })))
    .execute()
}

export type AuditRecord = Omit<Insertable<AuditEventTable>, 'details'> & Required<Pick<Act, 'details'>>

/** The row of an act, for statements that write it in one with the act. `id`: of a row that may be there already. */
export function auditRecord(
  { now, random, origin }: Pick<Recorder, 'now' | 'random' | 'origin'>,
  action: Action,
  act: Act,
  id?: string,
): AuditRecord {
  const occurredAt = now()
  return {
    id: id ?? uuidv7InOrder(occurredAt, random),
    occurredAt,
    actorId: origin.actorId,
    onBehalfOf: origin.onBehalfOf ?? null,
    action,
    targetType: ACTIONS[action],
    targetId: act.targetId ?? null,
    clientName: act.clientName ?? null,
    organizationId: act.organizationId ?? null,
    ipAddress: origin.ipAddress ?? null,
    userAgent: origin.userAgent?.slice(0, MAX_USER_AGENT) ?? null,
    requestId: loggedRequestId(origin.requestId),
    outcome: 'success',
    count: act.count ?? 1,
    details: act.details ?? {},
  }
}

/** For rows that stay: a caller's own id could be an address or a name. */
export const loggedRequestId = (id: string | undefined): string | null =>
  id !== undefined && UUID.test(id) ? id : null

/** Characters that are kept, as in a session. */
const MAX_USER_AGENT = 512

/** The beginning of an INSERT of these rows; a WHERE may follow. One JSON parameter, so that the text is the same for any number. */
export const insertRecords = (records: readonly AuditRecord[]) =>
  sql`insert into service.audit_event
    select * from json_populate_recordset(null::service.audit_event, ${JSON.stringify(records.map(inSnakeCase))}::json)`

const inSnakeCase = (record: AuditRecord) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [columnName(name), value]))
