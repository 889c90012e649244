import { LIMITED_LOCKS } from '#databases/drivers/postgres/sql/limited-locks.ts'
import { withSystemOperators } from '#databases/drivers/postgres/sql/system-names.ts'

/** Definitions of checks and exclusions, which the catalogue does not have: schema, table, constraint, text. It may wait for locks. */
export const CONSTRAINT_DEFINITIONS_SQL = withSystemOperators(`
select coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(n.nspname, c.relname, k.conname, pg_catalog.pg_get_constraintdef(k.oid))), '[]') as definitions
from ${LIMITED_LOCKS} cross join pg_catalog.pg_constraint k
join pg_catalog.pg_class c on c.oid = k.conrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where k.contype = any (array['c', 'x']) and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and pg_catalog.has_schema_privilege(n.oid, 'usage')`)
