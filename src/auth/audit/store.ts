import { type Selectable, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { AuditEventTable } from '#kernel/db/tables.ts'

export type AuditEvent = Selectable<AuditEventTable>

export type AuditFilter = {
  readonly actorId?: string
  readonly targetId?: string
  readonly action?: string
  readonly organizationId?: string
  readonly from?: Date
  /** The first moment that does not count. */
  readonly to?: Date
}

/** Events, newest first, after the one with the id `before`. Ids are in the order of time, so one index finds a page. */
export function listAuditEvents(
  db: Db,
  { actorId, targetId, action, organizationId, from, to }: AuditFilter,
  { before, limit }: { readonly before: string | undefined; readonly limit: number },
): Promise<AuditEvent[]> {
  let events = db.selectFrom('auditEvent').selectAll()
  if (actorId !== undefined) events = events.where('actorId', '=', actorId)
  if (targetId !== undefined) events = events.where('targetId', '=', targetId)
  if (action !== undefined) events = events.where('action', '=', action)
  if (organizationId !== undefined) events = events.where('organizationId', '=', organizationId)
  if (from !== undefined) events = events.where('id', '>=', firstIdAt(from))
  if (to !== undefined) events = events.where('id', '<', firstIdAt(to))
  if (before !== undefined) events = events.where('id', '<', before)
  return events.orderBy('id', 'desc').limit(limit).execute()
}

const firstIdAt = (time: Date) => sql<string>`service.first_id_at(${time})`
