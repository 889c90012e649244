import {
  FEED_NAME,
  type KeyColumn,
  noteFunction,
  TRIGGERS,
} from '#databases/drivers/postgres/changes/note-function.ts'
import { SEARCH_PATHS_SQL, SHADOWS_SQL } from '#databases/drivers/postgres/sql/policies/function-reads.ts'
import type { TableName } from '#databases/request/request.ts'

/** A table as the feed sees it, also one without triggers of the feed. */
export type NotedTable = {
  readonly oid: string
  readonly schema: string
  readonly table: string
  readonly kind: string
  readonly key: readonly KeyColumn[]
  /** No two rows have the same key, not even for a moment: no deferrable key, no child tables. */
  readonly isSole: boolean
  /** It has partitions, or other tables inherit from it. */
  readonly isParent: boolean
  /** Its rows are written by statements that fire none of its triggers: those on its parent, or a crash, which empties an unlogged table. */
  readonly isUntold: boolean
  /** Functions of the feed that its triggers call, and how many of these triggers fire. */
  readonly functions: readonly string[]
  readonly triggers: readonly string[]
  readonly firing: number
  /**
   * Versions of the rows of the system's catalog that describe the table, and its policies with the functions that they call. Of the row in pg_class only some values: TRUNCATE
   * and CLUSTER give it a new version too.
   */
  readonly structure: string
  readonly policies: string
}

export const nameOf = ({ schema, table }: NotedTable): TableName => ({ schema, table })
export const isSame = (one: TableName, other: TableName): boolean =>
  one.schema === other.schema && one.table === other.table

export const hasAllTriggers = ({ firing }: NotedTable): boolean => firing === TRIGGERS.length
const calls = ({ functions }: NotedTable, key: readonly KeyColumn[]): boolean =>
  functions.length === 1 && functions[0] === noteFunction(key).name

export const hasUsableKey = ({ key }: NotedTable): boolean =>
  key.length > 0 && key.every(({ isPlain }) => isPlain)

/** Its triggers are told of all writes. */
export const isTold = (noted: NotedTable): boolean => !noted.isUntold && hasAllTriggers(noted)

/** All triggers fire, and they note the columns of the key that the table has now. */
export const isLive = (noted: NotedTable): boolean =>
  hasUsableKey(noted) && isTold(noted) && calls(noted, noted.key)

/** All triggers fire, and note that the table has changed. */
export const isWatched = (noted: NotedTable): boolean => isTold(noted) && calls(noted, [])

/** Types whose texts depend on no setting: bool, "char", name, int8, int2, int4, text, oid, cidr, macaddr, inet, bpchar, varchar, numeric, uuid. */
const FIXED_TYPES = [16, 18, 19, 20, 21, 23, 25, 26, 650, 829, 869, 1042, 1043, 1700, 2950]

/**
 * Types whose texts the writer's session decides as well: names of objects have no schema where the search path finds them, and another text as soon as the object is
 * renamed, and money has the signs of a country. regproc, money, regprocedure, regoper, regoperator, regclass, regtype, regconfig, regdictionary, regnamespace,
 * regrole, regcollation.
 */
const UNSTEADY_TYPES = [24, 790, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191]

/** The type below a domain, which may be one of another domain. */
const BASE_TYPE = `(
  with recursive down(type) as (
    select o.typbasetype
    union all
    select d.typbasetype from down join pg_type d on d.oid = down.type where d.typtype = 'd'
  )
  select down.type from down join pg_type d on d.oid = down.type where d.typtype <> 'd'
)`

const KEY = `(
  select json_agg(json_build_object('name', a.attname, 'type', t.oid::int8, 'isPlain', not (t.typcategory in ('A', 'C', 'R') or t.oid = any ('{${UNSTEADY_TYPES.join(',')}}'::oid[])),
    'isFixed', t.typtype = 'e' or t.oid = any ('{${FIXED_TYPES.join(',')}}'::oid[])) order by k.place)
  from pg_index i cross join unnest(i.indkey) with ordinality k(number, place)
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
  join pg_type o on o.oid = a.atttypid
  join pg_type t on t.oid = case when o.typtype = 'd' then ${BASE_TYPE} else o.oid end
  where i.indrelid = c.oid and i.indisprimary and k.place <= i.indnkeyatts
)`

/** Partitions and child tables at every depth: with one of them, rows come and go without a trigger. */
const DESCENDANTS = `(
  with recursive down(oid, version) as (
    select i.inhrelid, concat(i.inhrelid, '.', i.xmin) from pg_inherits i where i.inhparent = c.oid
    union
    select i.inhrelid, concat(i.inhrelid, '.', i.xmin) from down join pg_inherits i on i.inhparent = down.oid
  )
  select string_agg(down.version, ',' order by down.oid) from down
)`

/** Also one that is attached while streams read: writes to its parent fire no statement trigger of it. */
const IS_UNTOLD = `(c.relpersistence <> 'p' or exists (select from pg_inherits i where i.inhrelid = c.oid))`

/** Whether the function `p` may write to the feed, where there is one. Who is not its owner is bound by its row-level security. */
const CAN_NOTE = `coalesce((
  select has_table_privilege(p.proowner, f.oid, 'insert') and pg_has_role(p.proowner, f.relowner, 'usage') and not f.relforcerowsecurity
  from pg_class f where f.oid = to_regclass('public.${FEED_NAME}')
), true)`

/**
 * Rows of `with` for tables that have triggers of the feed, through the indexes of the catalog: pg_trigger has none by function. Runs with the
 * search path pg_catalog.
 */
export const NOTED = `
hook as materialized (
  select t.tgrelid, t.tgname, p.proname,
    t.tgenabled in ('O', 'A') and ${CAN_NOTE} as fires,
    concat(t.oid, '.', t.xmin, '.', p.xmin) as version
  from pg_proc p
  join pg_depend d on d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid and d.classid = 'pg_trigger'::regclass
  join pg_trigger t on t.oid = d.objid
  where p.proname >= '${FEED_NAME}_' and p.proname < '${FEED_NAME}\`' and p.proname ~ '^${FEED_NAME}_[0-9a-f]{16}$'
    and p.pronamespace = to_regnamespace('public') and not t.tgisinternal
),
hooked as materialized (
  select tgrelid, array_agg(distinct proname) as functions, array_agg(tgname) as triggers,
    count(*) filter (where fires) as firing, string_agg(version, ',' order by tgname) as version
  from hook group by tgrelid
)`

/** Versions of the functions that the policies of the table call, and what decides about the names in their bodies. */
const CALLED = `(
  select concat(' ', string_agg(concat(f.oid, '.', f.xmin), ',' order by f.oid), ' ', ${SHADOWS_SQL}, ' ', ${SEARCH_PATHS_SQL})
  from pg_policy p join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_proc'::regclass
  join pg_proc f on f.oid = d.refobjid where p.polrelid = c.oid having count(*) > 0
)`

/** Versions of the user-defined types of the columns: a renamed label, or member, changes how rows are written. */
const TYPES = `(
  select string_agg(version, ',' order by version) from pg_attribute a join pg_type t on t.oid = a.atttypid cross join lateral (
    select concat(e.oid, '.', e.xmin) as version from pg_enum e where e.enumtypid in (t.oid, t.typelem, t.typbasetype)
    union all
    select concat(m.attrelid, '.', m.attnum, '.', m.xmin) from pg_attribute m where m.attrelid = t.typrelid and t.typrelid <> 0
  ) as part
  where a.attrelid = c.oid and a.attnum > 0 and a.atttypid >= 16384
)`

/** Of a row `c` of pg_class with `n` of pg_namespace and `h` of hooked. */
export const AS_NOTED = `json_build_object(
  'oid', c.oid::text, 'schema', n.nspname, 'table', c.relname, 'kind', c.relkind, 'key', coalesce(${KEY}, '[]'),
  'isParent', c.relhassubclass, 'isUntold', ${IS_UNTOLD}, 'isSole', (c.relkind = 'p' or not c.relhassubclass) and exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and i.indimmediate),
  'functions', coalesce(h.functions, '{}'), 'triggers', coalesce(h.triggers, '{}'), 'firing', coalesce(h.firing, 0),
  'structure', concat_ws(' ', n.xmin, c.relowner, c.relacl, c.relrowsecurity, c.relforcerowsecurity, ${IS_UNTOLD}, h.version,
    (select string_agg(a.xmin::text, ',' order by a.attnum) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0),
    (select i.xmin from pg_index i where i.indrelid = c.oid and i.indisprimary),
    ${DESCENDANTS}, ${TYPES}),
  'policies', concat((select string_agg(concat(p.oid, '.', p.xmin), ',' order by p.oid) from pg_policy p where p.polrelid = c.oid), ${CALLED})
)`

/** Tables with triggers of the feed, and those of a JSON array of names. */
export const NOTED_TABLES_SQL = `with ${NOTED}
select coalesce(json_agg(${AS_NOTED} order by c.oid), '[]') as tables
from pg_class c join pg_namespace n on n.oid = c.relnamespace left join hooked h on h.tgrelid = c.oid
where c.oid in (
  select tgrelid from hooked
  union all
  select o.oid from json_array_elements($1::json) asked
    join pg_namespace s on s.nspname = asked ->> 'schema' join pg_class o on o.relnamespace = s.oid and o.relname = asked ->> 'table'
)`
