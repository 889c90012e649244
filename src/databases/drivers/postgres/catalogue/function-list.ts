import type { FunctionFilter } from '#databases/drivers/management.ts'
import { LIMITED_LOCKS } from '#databases/drivers/postgres/sql/limited-locks.ts'
import { type BuiltSql, bind, createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'

/**
 * Functions, procedures and aggregates by schema and name, as one JSON value `{ functions, total }`. Those of the system and of extensions
 * only when asked for. Runs with the search path pg_catalog.
 */
export function functionListSql(filter: FunctionFilter): BuiltSql {
  const sql = createSql('')
  const conditions = [
    ...(filter.schema === undefined ? [] : [`n.nspname = ${bind(sql, filter.schema)}`]),
    ...(filter.nameLike === undefined ? [] : [`p.proname::text like ${bind(sql, filter.nameLike)}`]),
    ...(filter.includeSystem ? [] : [OWN]),
  ]
  const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''
  const page = `limit ${bind(sql, String(filter.limit))} offset ${bind(sql, String(filter.offset))}`
  const definition = filter.includeDefinition
    ? `, 'definition', case when p.prokind in ('f', 'p', 'w') then pg_get_functiondef(p.oid) end`
    : ''
  sql.text = `
with found as (
  select p.*, n.nspname from pg_proc p join pg_namespace n on n.oid = p.pronamespace ${where}
), page as (
  select * from found p order by p.nspname, p.proname, p.oid ${page}
)
select json_build_object('total', (select count(*) from found), 'functions', (
  select coalesce(json_agg(json_build_object(
    'schema_name', p.nspname, 'function_name', p.proname, 'kind', ${KIND},
    'arguments', pg_get_function_arguments(p.oid),
    'arg_types', array(
      select format_type(a.type, null) from unnest(p.proargtypes::oid[]) with ordinality a(type, place) order by a.place
    ),
    'returns', pg_get_function_result(p.oid), 'language', l.lanname, 'volatility', ${VOLATILITY},
    'security_definer', p.prosecdef, 'owner', pg_get_userbyid(p.proowner)${definition}
  ) order by p.nspname, p.proname, p.oid), '[]') from ${LIMITED_LOCKS} cross join page p join pg_language l on l.oid = p.prolang
)) as listed`
  return sql
}

const KIND = `case p.prokind when 'f' then 'function' when 'p' then 'procedure' when 'a' then 'aggregate' else 'window' end`
const VOLATILITY = `case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end`
const OWN = `n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not exists (
    select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
  and not (n.nspname = 'public' and p.proname ~ '^service_changes_[0-9a-f]{16}$')`
