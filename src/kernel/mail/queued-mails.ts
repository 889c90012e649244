import { sql } from 'kysely'
import type { Db } from '../db/connect.ts'
import type { Secrets } from '../secrets.ts'

/** A job of the queue whose data is sealed. */
type QueuedMail = {
  readonly id: string
  readonly purpose: 'mail' | 'mail-request'
  readonly sealed: string
}

/** Jobs that are not done, for programs without a queue. Its tables may not exist yet. */
export async function listQueuedMails(db: Db): Promise<readonly QueuedMail[]> {
  const { rows: found } = await sql<{ there: boolean }>`
    select to_regclass('service_jobs.job') is not null as there`.execute(db)
  if (found[0]?.there !== true) return []
  const { rows } = await sql<QueuedMail>`
    select id, case name when 'send-mail' then 'mail' else 'mail-request' end as purpose,
        coalesce(data ->> 'mail', data ->> 'request') as sealed
      from service_jobs.job where name in ('send-mail', 'answer-mail-request') and state < 'completed'`.execute(
    db,
  )
  return rows
}

/** Seals for their jobs those that have no owner yet (bind-sealed.ts). Both kinds had one purpose. */
export async function bindQueuedMails(db: Db, secrets: Secrets): Promise<void> {
  for (const { id, purpose, sealed } of await listQueuedMails(db)) {
    const opened = secrets.openUnbound('mail', sealed)
    if (opened === undefined) continue
    const field = purpose === 'mail' ? 'mail' : 'request'
    await sql`
      update service_jobs.job set data = jsonb_set(data, ${[field]}::text[], to_jsonb(${secrets.seal(purpose, opened, id)}::text))
        where id = ${id} and data ->> ${field} = ${sealed}`.execute(db)
  }
}
