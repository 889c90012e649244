-- Indexes by which parts of names and addresses are found (decision 71), where the server has the extension pg_trgm and this role may install it: it
-- is trusted from PostgreSQL 13 on. Without them these searches read every row. An operator who installs the extension later calls the function again.

create function service.index_parts() returns boolean language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  place text;
begin
  begin
    create extension if not exists pg_trgm with schema service;
  -- Each provider refuses it in its own way.
  exception when others then
    raise notice 'no extension pg_trgm: %', sqlerrm;
  end;
  select n.nspname into place from pg_extension e join pg_namespace n on n.oid = e.extnamespace
    where e.extname = 'pg_trgm' and has_schema_privilege(n.oid, 'usage');
  if place is null then
    return false;
  end if;
  -- A short list of pending entries, which every search reads.
  execute format('create index if not exists user_by_part on service."user"
    using gin (email collate "C" %1$I.gin_trgm_ops, lower(name) collate "C" %1$I.gin_trgm_ops) with (gin_pending_list_limit = 256)', place);
  execute format('create index if not exists organization_by_part on service.organization
    using gin (name %1$I.gin_trgm_ops, slug %1$I.gin_trgm_ops) with (gin_pending_list_limit = 256)', place);
  return true;
end $$;

select service.index_parts();
