import { HIDDEN_TABLES } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { LIMITED_LOCKS } from '#databases/drivers/postgres/sql/limited-locks.ts'
import { type BuiltSql, bind, createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { withSystemOperators } from '#databases/drivers/postgres/sql/system-names.ts'
import type { IndexName } from '#databases/plan/catalogue.ts'

/**
 * Indexes that the role can see, in one JSON value: all, or the one of this name. Their definitions are read under locks on their tables,
 * so a change of one index must not read the others.
 */
export function indexesSql(only: IndexName | undefined): BuiltSql {
  const sql = createSql(ALL_INDEXES)
  if (only !== undefined) {
    sql.text += ` and n.nspname operator(pg_catalog.=) ${bind(sql, only.schema)}`
    sql.text += ` and i.relname operator(pg_catalog.=) ${bind(sql, only.name)}`
  }
  return sql
}

const ALL_INDEXES = withSystemOperators(`
select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
  'schema', n.nspname, 'table', c.relname, 'name', i.relname, 'method', m.amname,
  'unique', x.indisunique, 'primary', x.indisprimary, 'valid', x.indisvalid,
  'columns', (
    select pg_catalog.json_agg(pg_catalog.pg_get_indexdef(x.indexrelid, place, false) order by place) from pg_catalog.generate_series(1, x.indnkeyatts) as place
  ),
  'definition', pg_catalog.pg_get_indexdef(x.indexrelid)
) order by n.nspname collate "C", c.relname collate "C", i.relname collate "C"), '[]') as indexes
from ${LIMITED_LOCKS} cross join pg_catalog.pg_index x
join pg_catalog.pg_class i on i.oid = x.indexrelid join pg_catalog.pg_am m on m.oid = i.relam
join pg_catalog.pg_class c on c.oid = x.indrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and pg_catalog.has_schema_privilege(n.oid, 'usage')
  and not (n.nspname = 'public' and c.relname = any (${HIDDEN_TABLES}))`)
