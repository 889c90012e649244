import type { Dependent, RunQuery } from '#databases/drivers/management.ts'
import { fail } from '#databases/failures.ts'
import type { Failure } from '#kernel/errors.ts'

/** An operator, a type or an operator class that a definition needs does not exist, or does not fit: the definition is at fault. */
export async function explainDefinition(_query: RunQuery, failure: Failure): Promise<Failure> {
  if (!AT_FAULT.has(failure.code)) return failure
  const { hint, cause } = failure
  return fail('invalid_definition', { cause, ...(hint !== undefined && { hint }) })
}

const AT_FAULT: ReadonlySet<string> = new Set([
  'object_not_found',
  'invalid_operator',
  'invalid_cast',
  'not_supported',
])

/** Adds what depends on the relation, or on one of its columns. */
export const explainDependents =
  ({ schema, name, column }: { readonly schema: string; readonly name: string; readonly column?: string }) =>
  async (query: RunQuery, failure: Failure): Promise<Failure> => {
    if (failure.code !== 'object_in_use') return failure
    const dependents = await query<Dependent>(DEPENDENTS_SQL, [schema, name, column ?? null, MOST])
    const { details, hint, cause } = failure
    return fail('object_in_use', {
      details: { ...details, dependents },
      ...(hint !== undefined && { hint }),
      cause,
    })
  }

const MOST = 100

/**
 * Objects that depend on a relation or column, on its row type, or on an index of it. Objects that PostgreSQL drops with it have other types
 * of dependency. Parts of the table itself are left out, unless only a column is dropped.
 */
const DEPENDENTS_SQL = `
with relation as (
  select c.oid, c.reltype, a.attnum from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  left join pg_attribute a on a.attrelid = c.oid and a.attname = $3 and not a.attisdropped
  where n.nspname = $1 and c.relname = $2
), dependency as (
  select d.* from pg_depend d, relation r
  where d.deptype = 'n' and (
    d.refclassid = 'pg_class'::regclass and d.refobjid = r.oid and (r.attnum is null or d.refobjsubid = r.attnum)
    or r.attnum is null and d.refclassid = 'pg_type'::regclass
      and d.refobjid in (select t.oid from pg_type t where r.reltype <> 0 and (t.oid = r.reltype or t.typelem = r.reltype)))
)
select distinct o.type, cn.nspname as schema_name, c.relname as table_name,
  coalesce(k.conname, p.polname, t.tgname, f.proname, c.relname, o.identity) as name
from dependency d cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) o
left join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
left join pg_constraint k on d.classid = 'pg_constraint'::regclass and k.oid = d.objid
left join pg_policy p on d.classid = 'pg_policy'::regclass and p.oid = d.objid
left join pg_trigger t on d.classid = 'pg_trigger'::regclass and t.oid = d.objid
left join pg_attrdef e on d.classid = 'pg_attrdef'::regclass and e.oid = d.objid
left join pg_proc f on d.classid = 'pg_proc'::regclass and f.oid = d.objid
left join pg_class c on c.oid = coalesce(w.ev_class, nullif(k.conrelid, 0), p.polrelid, t.tgrelid, e.adrelid,
  case when d.classid = 'pg_class'::regclass then d.objid end)
left join pg_namespace cn on cn.oid = c.relnamespace
where c.oid is null or not exists (select from relation r where r.oid = c.oid and (r.attnum is null or d.classid = 'pg_class'::regclass and d.objsubid = 0))
order by 2, 3, 4, 1 limit $4`
