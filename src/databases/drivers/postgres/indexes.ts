/** Indexes that the role can see, in one JSON value. */
export const indexesSql = `
select coalesce(json_agg(json_build_object(
  'schema', n.nspname, 'table', c.relname, 'name', i.relname, 'method', m.amname,
  'unique', x.indisunique, 'primary', x.indisprimary, 'valid', x.indisvalid,
  'columns', (
    select json_agg(pg_get_indexdef(x.indexrelid, place, false) order by place) from generate_series(1, x.indnkeyatts) as place
  ),
  'definition', pg_get_indexdef(x.indexrelid)
) order by n.nspname collate "C", c.relname collate "C", i.relname collate "C"), '[]') as indexes
from pg_index x
join pg_class i on i.oid = x.indexrelid join pg_am m on m.oid = i.relam
join pg_class c on c.oid = x.indrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and has_schema_privilege(n.oid, 'usage')`
