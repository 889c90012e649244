import type { Dependent, RunQuery } from '#databases/drivers/management.ts'
import { existingTable } from '#databases/drivers/postgres/sql/ddl/names.ts'
import type { Table } from '#databases/plan/catalogue.ts'

/**
 * Everything that CASCADE drops with the table or the column, but for its parts, which go without CASCADE too. The lock keeps the answer true until the
 * end of the transaction.
 */
export const alsoDropped =
  (table: Table, column?: string) =>
  async (query: RunQuery): Promise<readonly Dependent[]> => {
    await query(`lock table ${existingTable(table)} in access exclusive mode`, [])
    return query<Dependent>(ALSO_DROPPED_SQL, [table.schema, table.name, column ?? null])
  }

/**
 * Follows pg_depend as PostgreSQL does: all that depends on an object goes with it, and an object with its internal parts ('i') and extension
 * ('e'). What automatic dependencies ('a') alone lead to is a part of the dropped object.
 */
const ALSO_DROPPED_SQL = `
with recursive gone(class, object, part, is_part) as (
  select 'pg_class'::regclass::oid, c.oid, coalesce(a.attnum, 0)::int, true
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  left join pg_attribute a on a.attrelid = c.oid and a.attname = $3 and not a.attisdropped
  where n.nspname = $1 and c.relname = $2
  union
  select next.class, next.object, next.part, gone.is_part and next.deptype <> 'n' from gone cross join lateral (
    select d.classid, d.objid, d.objsubid, d.deptype from pg_depend d
      where d.refclassid = gone.class and d.refobjid = gone.object and (gone.part = 0 or d.refobjsubid = gone.part)
    union all
    select d.refclassid, d.refobjid, d.refobjsubid, d.deptype from pg_depend d
      where d.classid = gone.class and d.objid = gone.object and d.objsubid = gone.part and d.deptype in ('i', 'e')
  ) as next(class, object, part, deptype)
), other as (
  select distinct class, object, part from gone g where not is_part
    and not exists (select from gone p where p.is_part and p.class = g.class and p.object = g.object and p.part in (0, g.part))
    and not exists (
      select from pg_depend d join gone o on o.class = d.refclassid and o.object = d.refobjid
      where d.classid = g.class and d.objid = g.object and d.deptype = 'i')
)
select o.type, n.nspname as schema_name, c.relname as table_name, o.identity as name
from other cross join lateral pg_identify_object(other.class, other.object, other.part) o
left join pg_constraint k on other.class = 'pg_constraint'::regclass and k.oid = other.object
left join pg_policy p on other.class = 'pg_policy'::regclass and p.oid = other.object
left join pg_trigger t on other.class = 'pg_trigger'::regclass and t.oid = other.object
left join pg_attrdef e on other.class = 'pg_attrdef'::regclass and e.oid = other.object
left join pg_class c on c.oid = coalesce(nullif(k.conrelid, 0), p.polrelid, t.tgrelid, e.adrelid,
  case when other.class = 'pg_class'::regclass then other.object end)
left join pg_namespace n on n.oid = c.relnamespace
order by 1, 2, 3, 4`
