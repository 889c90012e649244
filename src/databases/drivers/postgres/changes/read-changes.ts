import type { Batch, KeyChange, ResetReason, TableChange } from '#databases/drivers/changes.ts'
import { addChange, createKeyWriter, type Keys } from '#databases/drivers/postgres/changes/keys.ts'
import { MAX_KEYS, MAX_NOTE_BYTES, MAX_NOTES } from '#databases/drivers/postgres/changes/limits.ts'
import { FEED_NAME } from '#databases/drivers/postgres/changes/note-function.ts'
import {
  AS_NOTED,
  isLive,
  NOTED,
  type NotedTable,
  nameOf,
} from '#databases/drivers/postgres/changes/noted-tables.ts'
import type { Boundary } from '#databases/drivers/postgres/changes/position.ts'
import { bind, createSql, type SqlBuilder } from '#databases/drivers/postgres/sql/sql-builder.ts'

/** The feed at one moment. */
export type Seen = {
  /** Null where no epoch has begun: the database was restored, or this is the first reader. */
  readonly epoch: string | null
  readonly origin: string
  readonly snapshot: string
  readonly tables: readonly NotedTable[]
}

/** The feed after a boundary. */
export type SeenChanges = Seen & {
  /** The boundary is later than this moment, so it is of another history. */
  readonly isAhead: boolean
  /** Changes after the boundary have been deleted. */
  readonly isPruned: boolean
  readonly isTooMany: boolean
  readonly lag: number
  readonly notes: readonly Note[]
}

/** A key of one column is its text. */
type Note = readonly [relation: string, op: string, keys: readonly unknown[] | null]

/**
 * The origin has the timeline of the server's log: another one begins when a standby takes over, or a server is restored to an earlier time. It
 * has the version of the feed's table: while its functions may not write there, they note nothing, and TRUNCATE takes notes away. And it has the time since
 * which the server counts its background writes: a crash loses these counts, and with them the numbers of transactions that had written
 * nothing to disk, which others get then.
 * The statement fails where a table of the feed is missing.
 */
const MOMENT = `
  'isWhole', not exists (select from public.${FEED_NAME} where false) and not exists (select from public.${FEED_NAME}_mark where false),
  'epoch', (select epoch from public.${FEED_NAME}_state),
  'origin', concat(to_regclass('public.${FEED_NAME}')::oid, '/', to_regclass('public.${FEED_NAME}_state')::oid, '/', left(pg_walfile_name(pg_current_wal_lsn()), 8), '/',
    (select o.xmin from pg_class o where o.oid = to_regclass('public.${FEED_NAME}')), '/', extract(epoch from pg_stat_get_bgwriter_stat_reset_time())),
  'snapshot', pg_current_snapshot()::text,
  'tables', (select coalesce(json_agg(${AS_NOTED} order by c.oid), '[]') from hooked h join pg_class c on c.oid = h.tgrelid join pg_namespace n on n.oid = c.relnamespace)`

/** By the first reader, and by the first one after a restore. */
export const BEGIN_EPOCH_SQL = `with begun as (
  insert into public.${FEED_NAME}_state (epoch) values (gen_random_uuid()) on conflict do nothing returning true
) select to_json((select count(*) from begun)) as begun`

export const momentSql = (): SqlBuilder =>
  createSql(`with ${NOTED} select json_build_object(${MOMENT}) as seen`)

/**
 * One statement, so that its snapshot is the boundary of what it reads. What a boundary does not see are the transactions that were running
 * and all that began later. Their notes are found by the index, however long one of them, or one in another database, may run.
 *
 * By id: a transaction that changes a row of another one has waited for its commit, so the ids of the notes of one key are in the order of the
 * commits. Ids of transactions are not.
 */
export function changesSql({ next, running }: Boundary): SqlBuilder {
  const sql = createSql('')
  const [after, open] = [`${bind(sql, next)}::xid8`, `${bind(sql, `{${running.join(',')}}`)}::xid8[]`]
  sql.text = `with ${NOTED},
  fresh as materialized (
    select * from (
      select id, at, relation, op, keys from public.${FEED_NAME} where xid = any (${open})
      union all
      select id, at, relation, op, keys from public.${FEED_NAME} where xid >= ${after} and xid < pg_snapshot_xmax(pg_current_snapshot())
    ) as noted limit ${MAX_NOTES + 1}
  ),
  summed as (
    select *, sum(coalesce(array_length(keys, 1), 1)) over (partition by relation) as total,
      sum(coalesce(pg_column_size(keys), 0)) over (partition by relation) as bytes
    from fresh
  ),
  told as (
    select id, relation, op, keys from summed where total <= ${MAX_KEYS} and bytes <= ${MAX_NOTE_BYTES}
    union all
    select min(id), relation, 'm'::"char", null from summed where total > ${MAX_KEYS} or bytes > ${MAX_NOTE_BYTES} group by relation
  )
  select json_build_object(${MOMENT},
    'isAhead', ${after} > pg_snapshot_xmax(pg_current_snapshot()),
    'isPruned', exists (
      select from public.${FEED_NAME}_mark m where m.is_pruned
        and (${after} < pg_snapshot_xmax(m.seen) or exists (select from unnest(${open}) r(xid) where pg_visible_in_snapshot(r.xid, m.seen)))
    ),
    'isTooMany', (select count(*) > ${MAX_NOTES} from fresh),
    'lag', (select coalesce(extract(epoch from clock_timestamp() - min(at)), 0) from fresh where isfinite(at)),
    'notes', (select coalesce(json_agg(json_build_array(relation::text, op, keys) order by id), '[]') from told where (select count(*) from fresh) <= ${MAX_NOTES})
  ) as seen`
  return sql
}

const OPS: Readonly<Record<string, KeyChange['op']>> = { i: 'insert', u: 'update', d: 'delete' }
const RESETS: Readonly<Record<string, ResetReason>> = {
  m: 'too_many',
  t: 'truncated',
  c: 'table_changed',
  w: 'watched',
}

export function tableChanges({ notes, tables, isTooMany }: SeenChanges): Batch['tables'] {
  const ofTable = Map.groupBy(notes, ([relation]) => relation)
  return tables.flatMap((noted): TableChange[] => {
    const table = nameOf(noted)
    const own = ofTable.get(noted.oid) ?? []
    if (isTooMany) return [{ table, reset: 'too_many' }]
    if (own.length === 0) return []
    const reset = own.map(([, op]) => RESETS[op]).find((reason) => reason !== undefined)
    if (reset !== undefined) return [{ table, reset }]
    // The keys may be values of columns that are the key no more.
    const keys = isLive(noted) ? keysOf(noted, own) : undefined
    return [keys === undefined ? { table, reset: 'table_changed' } : { table, keys: [...keys.values()] }]
  })
}

/** Undefined where a note has no keys of the table: its owner may write any. */
function keysOf({ key, isSole }: NotedTable, notes: readonly Note[]): Keys | undefined {
  const write = createKeyWriter(key)
  const keys: Keys = new Map()
  for (const [, op, all] of notes) {
    // Where another row may have the key, that of a deleted one has to be read again.
    const change = op === 'd' && !isSole ? 'update' : OPS[op]
    for (const values of all ?? []) {
      const own = typeof values === 'string' ? [values] : values
      if (change === undefined || !isKey(own, key.length)) return undefined
      addChange(keys, change, write(own))
    }
  }
  return keys
}

const isKey = (values: unknown, length: number): values is readonly string[] =>
  Array.isArray(values) && values.length === length && values.every((value) => typeof value === 'string')
