import { edge } from '#kernel/http/failures.ts'
import { instantFrom } from '#kernel/instants.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type AuditEvent, type AuditFilter, listAuditEvents } from './store.ts'

type AuditQuery = Omit<AuditFilter, 'from' | 'to'> & {
  readonly from?: string
  readonly to?: string
  readonly limit?: number
  readonly cursor?: string
}

/** A page of the audit trail; `nextCursor` is null at its end. */
export async function auditEvents(
  { db }: Kernel,
  { from, to, limit = 100, cursor: before, ...filter }: AuditQuery,
): Promise<{ readonly events: AuditEvent[]; readonly nextCursor: string | null }> {
  const times = { ...timeOf('from', from), ...timeOf('to', to) }
  const found = await listAuditEvents(db, { ...filter, ...times }, { before, limit: limit + 1 })
  const events = found.slice(0, limit)
  return { events, nextCursor: found.length > limit ? (events.at(-1)?.id ?? null) : null }
}

function timeOf<Field extends 'from' | 'to'>(
  field: Field,
  text: string | undefined,
): { readonly [F in Field]?: Date } {
  if (text === undefined) return {}
  const time = instantFrom(text)
  if (time === undefined)
    throw edge('validation_error', {
      message: `${field} must be a date like 2026-01-31 or 2026-01-31T12:00:00Z`,
      details: { field, in: 'querystring' },
    })
  // An id has no room for a time before 1970. The computed key is the field's own.
  return { [field]: new Date(Math.max(0, time.getTime())) } as { [F in Field]: Date }
}
