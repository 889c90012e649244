import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { isOwn, type JobRow } from './jobs/store.ts'

type StoredBackup = Pick<JobRow, 'id' | 'location' | 'sizeBytes'>

/** The completed backups that this installation has made by a schedule, newest first. */
export const listCompleted = (db: Db, schedule: string): Promise<StoredBackup[]> =>
  db
    .selectFrom('backupJob')
    .select(['id', 'location', 'sizeBytes'])
    .where('schedule', '=', schedule)
    .where('status', '=', 'completed')
    .where(isOwn)
    .orderBy('id', 'desc')
    .limit(11_000)
    .execute()

type Schedule = { readonly name: string; readonly cron: string }

/** Notes the schedules that are there; the runs of a new or changed one count from now on. */
export async function keepSchedules(db: Db, schedules: readonly Schedule[], now: Date): Promise<void> {
  const names = schedules.map(({ name }) => name)
  await sql`delete from service.backup_schedule where name <> all (${names})`.execute(db)
  for (const { name, cron } of schedules)
    await sql`insert into service.backup_schedule (name, cron, seen_until) values (${name}, ${cron}, ${now})
      on conflict (name) do update set cron = excluded.cron, seen_until = excluded.seen_until
      where backup_schedule.cron <> excluded.cron`.execute(db)
}

/** Notes that the runs until that time were begun, or are known to be missed: false when that is noted already. */
export async function seeUntil(db: Db, name: string, until: Date): Promise<boolean> {
  const seen = await db
    .updateTable('backupSchedule')
    .set({ seenUntil: until })
    .where('name', '=', name)
    .where('seenUntil', '<', until)
    .returning('name')
    .executeTakeFirst()
  return seen !== undefined
}
