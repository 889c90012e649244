import { sql } from 'kysely'
import type { Kernel } from '../kernel.ts'

/** Deletes events that are older than `audit.keep`, and clears old addresses, at most `batch` of each; returns the larger number. */
export async function pruneAuditEvents({ db, config }: Kernel, batch: number): Promise<number> {
  const { rows } = await sql<{ pruned: number }>`
    select service.prune_audit_events(make_interval(secs => ${config.audit.keep / 1_000}), ${batch}) as pruned`.execute(
    db,
  )
  return rows[0]?.pruned ?? 0
}
