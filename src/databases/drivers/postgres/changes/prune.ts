import { FEED_NAME } from '#databases/drivers/postgres/changes/note-function.ts'
import type { Runner } from '#databases/drivers/postgres/runner.ts'
import { bind, createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { Failure } from '#kernel/errors.ts'

/** Notes that one statement deletes. */
const BATCH = 5_000
/** Marks in the time that changes are kept: they are deleted that much later at most. */
const MARKS = 24

/**
 * Deletes notes by what an old snapshot saw, and not by their age: a long transaction commits old notes. A mark is a snapshot and its time. The
 * reader compares positions with the last mark that was pruned by. Marks of the future are from before a clock was set back: the order of their times is not that of their snapshots. DELETE locks only rows that no writer touches.
 */
export async function prune(runner: Runner, keep: number): Promise<boolean> {
  try {
    await runner.systemValue(markSql(keep))
    await deleteNotes(runner)
    return true
  } catch (error) {
    if (error instanceof Failure && error.code === 'table_not_found') return false
    throw error
  }
}

async function deleteNotes(runner: Runner): Promise<void> {
  for (let from: string | undefined = '0'; from !== undefined; ) {
    const deleted = (await runner.systemValue(deleteSql(from))) as Deleted | undefined // as the statement builds it
    from = deleted === undefined || deleted.count < BATCH ? undefined : deleted.last
  }
}

type Deleted = { readonly count: number; readonly last: string }

function markSql(keep: number) {
  const sql = createSql('')
  const age = (part: number) =>
    `clock_timestamp() - ${bind(sql, String(Math.round(part)))}::float8 * interval '1 millisecond'`
  sql.text = `with due as (
    update public.${FEED_NAME}_mark set is_pruned = true
    where at = (select max(at) from public.${FEED_NAME}_mark where at <= ${age(keep)} and not is_pruned) returning at
  ),
  gone as (delete from public.${FEED_NAME}_mark where at < (select at from due) or at > clock_timestamp() and not is_pruned),
  made as (
    insert into public.${FEED_NAME}_mark (at, seen) select clock_timestamp(), pg_current_snapshot()
    where not exists (select from public.${FEED_NAME}_mark where at > ${age(keep / MARKS)} and at <= clock_timestamp())
  )
  select to_json((select count(*) from due)) as due`
  return sql
}

/** From the transaction on that the last statement came to, or each would pass the dead rows of the former ones. */
function deleteSql(from: string) {
  const sql = createSql('')
  sql.text = `with deleted as (
    delete from public.${FEED_NAME} where ctid = any (array(
      select c.ctid from public.${FEED_NAME} c, public.${FEED_NAME}_mark m
      where m.is_pruned and c.xid >= ${bind(sql, from)}::xid8 and c.xid < pg_snapshot_xmax(m.seen) and pg_visible_in_snapshot(c.xid, m.seen)
      order by c.xid limit ${BATCH}
    )) returning xid
  )
  select json_build_object('count', count(*), 'last', coalesce(max(xid::text::numeric), 0)::text) as deleted from deleted`
  return sql
}
