import type { ChangeConditions, Dependent, RunQuery } from '#databases/drivers/management.ts'
import { type DatabaseFailureCode, fail } from '#databases/failures.ts'
import type { Failure } from '#kernel/errors.ts'

/** An operator, a type or an operator class that a definition needs does not exist, or does not fit. */
const OF_DEFINITIONS = ['invalid_operator', 'invalid_cast', 'not_supported'] as const

export const explainDefinition = refusalAs('invalid_definition', ['object_not_found'])

/** Gives failures that a definition has caused the code `invalid`, and a hint if they have none. Others stay as they are. */
export function refusalAs(
  invalid: DatabaseFailureCode & `invalid_${'definition' | 'function' | 'policy'}`,
  further: readonly DatabaseFailureCode[],
  hintOf: (failure: Failure) => string | undefined = () => undefined,
): NonNullable<ChangeConditions['explain']> {
  const causes: ReadonlySet<string> = new Set([...OF_DEFINITIONS, ...further])
  return async (_query, failure) => {
    if (!causes.has(failure.code)) return failure
    const { hint = hintOf(failure), cause } = failure
    return fail(invalid, { cause, ...(hint !== undefined && { hint }) })
  }
}

/** Further failures of a definition with expressions or a body. */
export const OF_EXPRESSIONS = [
  'invalid_definition',
  'invalid_value',
  'rejected_by_database',
  'table_not_found',
  'too_complex',
  'unknown_column',
] as const satisfies readonly DatabaseFailureCode[]

/** Adds what depends on the relation, or on one of its columns. */
export const explainDependents =
  ({ schema, name, column }: { readonly schema: string; readonly name: string; readonly column?: string }) =>
  async (query: RunQuery, failure: Failure): Promise<Failure> => {
    if (failure.code !== 'object_in_use') return failure
    const dependents = await query<Dependent>(DEPENDENTS_SQL, [schema, name, column ?? null, MAX_DEPENDENTS])
    const { details, hint, cause } = failure
    return fail('object_in_use', {
      details: { ...details, dependents },
      ...(hint !== undefined && { hint }),
      cause,
    })
  }

const MAX_DEPENDENTS = 100

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
