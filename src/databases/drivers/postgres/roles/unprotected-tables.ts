import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import { withSystemOperators } from '#databases/drivers/postgres/sql/system-names.ts'
import { connected, GuardedClient } from '#kernel/db/guarded-client.ts'

/** An object that callers of a client with row-level security reach and that no policy protects, or that makes policies wrong. */
type UnprotectedTable = { readonly name: string; readonly why: string }

/**
 * For the operator: tables that one of the two roles may access without a policy, and functions that would give policies another caller's
 * values.
 */
export async function findUnprotectedTables(
  url: string,
  { anonymousRole, signedInRole }: RowLevelSecurity,
): Promise<readonly UnprotectedTable[]> {
  const client = new GuardedClient({ connectionString: url, statement_timeout: 10_000, deadline: 12_000 })
  return connected(client, async () => {
    return (await client.query<UnprotectedTable>(UNPROTECTED_SQL, [[anonymousRole, signedInRole]])).rows
  })
}

const UNPROTECTED_SQL = withSystemOperators(`
select c.oid::pg_catalog.regclass::pg_catalog.text as name, case
    when c.relkind = any (array['v', 'm']) then 'is a view that reads with the rights of its owner: set (security_invoker = true)'
    when not c.relrowsecurity then 'has row-level security off: alter table … enable row level security'
    else 'has no policy, so callers see none of its rows: create policy …'
  end as why
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and exists (
    select from pg_catalog.pg_roles r where r.rolname = any ($1::pg_catalog.text[]) and pg_catalog.has_schema_privilege(r.oid, n.oid, 'usage')
      and pg_catalog.has_table_privilege(r.oid, c.oid, 'select, insert, update, delete')
  )
  and case
    when c.relkind = any (array['r', 'p']) then not c.relrowsecurity or not exists (select from pg_catalog.pg_policy p where p.polrelid = c.oid)
    when c.relkind = 'v' then not coalesce(pg_catalog.array_to_string(c.reloptions, ',') operator(pg_catalog.~*) 'security_invoker=(true|on|yes|1)', false)
    else c.relkind = 'm'
  end
union all
select p.oid::pg_catalog.regprocedure::pg_catalog.text, 'is IMMUTABLE, so a plan that is kept holds what it said of the first caller: alter function … stable'
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and p.prokind = 'f' and p.provolatile = 'i'
  and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid and d.objid = p.oid and d.deptype = 'e')
  and (
    case when p.prokind = 'f' then pg_catalog.pg_get_functiondef(p.oid) operator(pg_catalog.~*) 'current_(setting|user|role)|session_user' end
    -- Without arguments it is a constant, or calls a function that reads the session.
    or p.pronargs = 0 and exists (
      select from pg_catalog.pg_depend d
      where d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass::pg_catalog.oid and d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid and d.refobjid = p.oid
    )
  )
order by 1`)
