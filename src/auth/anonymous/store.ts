import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'

type Candidates = {
  /** They are the next ones by id. */
  readonly after: string
  readonly createdBefore: Date
  readonly now: Date
  readonly batch: number
}

/**
 * Deletes those of the candidates that have no session and are locked by no other transaction, and so neither one whose upgrade is under way.
 * `last`: the id of the last candidate; null when there is none.
 */
export async function deleteIdleAnonymousUsers(
  db: Db,
  { after, createdBefore, now, batch }: Candidates,
): Promise<{ readonly deleted: readonly string[]; readonly last: string | null }> {
  const { rows } = await sql<{ readonly deleted: readonly string[]; readonly last: string | null }>`
    with candidate as materialized (
      select id from service."user" where is_anonymous and id > ${after} and created_at <= ${createdBefore}
      order by id limit ${batch}
    )
    , idle as materialized (
      select u.id from service."user" u join candidate using (id)
      where u.is_anonymous and not exists (select from service.session s where s.user_id = u.id and s.expires_at > ${now})
      for update of u skip locked
    )
    , gone as (delete from service."user" u using idle where u.id = idle.id returning u.id)
    select (select coalesce(array_agg(id), '{}') from gone) as deleted,
      (select id from candidate order by id desc limit 1) as last`.execute(db)
  return rows[0] ?? { deleted: [], last: null }
}
