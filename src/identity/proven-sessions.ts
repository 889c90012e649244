import { sql } from 'kysely'
import { type AuditRecord, insertRecords } from '#kernel/audit/record-act.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** A session, the hash of the token that was shown for it, and the row of the audit trail for its end. */
export type ProvenSession = {
  readonly id: string
  readonly tokenHash: Buffer
  readonly record: AuditRecord
}

/**
 * Ends the given sessions that are valid, have no tickets and no impersonated or derived sessions and are locked by no other transaction, with
 * their users' rows locked (proof.ts). Returns their ids. All these are deleted with their session and might be locked by another transaction,
 * so such sessions are left out: this statement waits for no row, and no user waits for another.
 */
export async function deleteProvenSessions(
  { db, now }: Kernel,
  proven: readonly ProvenSession[],
): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ readonly id: string }>`
    with proven as materialized (
      select s.id from unnest(${proven.map(({ id }) => id)}::uuid[], ${proven.map(({ tokenHash }) => tokenHash)}::bytea[]) as shown (id, token_hash)
        join service.session s on s.id = shown.id and s.token_hash = shown.token_hash
        join service."user" u on u.id = s.user_id
      where s.expires_at > ${now()} and not u.banned
        and not exists (select from service.verification v where v.session_id = s.id)
        and not exists (select from service.session c where c.parent_session_id = s.id) and s.impersonated_by is null
        and not exists (select from service.session d where d.origin_session_id = s.id)
      for no key update of u skip locked for update of s skip locked
    )
    , ended as (delete from service.session using proven where session.id = proven.id returning session.id)
    , recorded as (${insertRecords(proven.map(({ record }) => record))}
        where details ->> 'sessionId' in (select id::text from ended))
    select id from ended`.execute(db)
  return new Set(rows.map(({ id }) => id))
}
