import { FEED_NAME } from '#databases/drivers/postgres/changes/note-function.ts'

export const FEED_TABLES = `array['${FEED_NAME}', '${FEED_NAME}_state', '${FEED_NAME}_mark']`

/**
 * Tables of the feed, in the client's database. The catalogue excludes them, and only their owner reaches them (CLOSE_FEED). Creation is
 * serialised by a lock, as that of idempotency keys.
 *
 * To compress keys would cost 1.5 µs each. A plain table, because partitions are dearer here (docs/decisions/0073-live-rows.md).
 */
export const LOCK_FEED = `select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('public.${FEED_NAME}'))`

export const CREATE_STORAGE: readonly string[] = [
  LOCK_FEED,
  `do $$ begin
     if pg_catalog.to_regclass('public.${FEED_NAME}') is null then
       create table public.${FEED_NAME} (
         xid xid8 not null default pg_catalog.pg_current_xact_id(),
         id bigint not null generated always as identity,
         at timestamptz not null default pg_catalog.clock_timestamp(),
         relation oid not null,
         op "char" not null,
         keys text[]
       ) with (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off);
       alter table public.${FEED_NAME} alter keys set storage external;
       create index ${FEED_NAME}_xid on public.${FEED_NAME} (xid);
       alter table public.${FEED_NAME} enable row level security;
     end if;
     if pg_catalog.to_regclass('public.${FEED_NAME}_state') is null then
       create table public.${FEED_NAME}_state (only_row boolean primary key default true check (only_row), epoch uuid not null);
       alter table public.${FEED_NAME}_state enable row level security;
     end if;
     if pg_catalog.to_regclass('public.${FEED_NAME}_mark') is null then
       create table public.${FEED_NAME}_mark (at timestamptz not null, seen pg_snapshot not null, is_pruned boolean not null default false);
       alter table public.${FEED_NAME}_mark enable row level security;
     end if;
   end $$`,
]

/**
 * Default privileges may have given everything to other roles. Row-level security stops neither TRUNCATE nor a trigger, which would run as the
 * owner of the functions, nor roles that bypass it; a moved sequence would stop writers.
 */
export const CLOSE_FEED = `do $$ declare given record; begin
  for given in
    select pg_catalog.format('%s public.%I', case c.relkind when 'S' then 'sequence' else 'table' end, c.relname) as what, a.grantee
    from pg_catalog.pg_class c cross join pg_catalog.aclexplode(c.relacl) a
    where c.relnamespace operator(pg_catalog.=) 'public'::regnamespace and a.grantee operator(pg_catalog.<>) c.relowner
      and (c.relname operator(pg_catalog.=) any (${FEED_TABLES}) or c.oid operator(pg_catalog.=) pg_catalog.pg_get_serial_sequence('public.${FEED_NAME}', 'id')::regclass)
    union
    select pg_catalog.format('function %s', p.oid::regprocedure), a.grantee
    from pg_catalog.pg_proc p cross join pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a
    where p.pronamespace operator(pg_catalog.=) 'public'::regnamespace and p.proname operator(pg_catalog.~) '^${FEED_NAME}_[0-9a-f]{16}$'
      and a.grantee operator(pg_catalog.<>) p.proowner
  loop
    execute pg_catalog.format('revoke all on %s from %s', given.what, case given.grantee when 0 then 'public' else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(given.grantee)) end);
  end loop;
end $$`

/** With the last trigger, everything goes; functions that no table uses go in any case. */
export const DROP_UNUSED = `do $$ declare unused regprocedure; begin
  for unused in
    select p.oid from pg_catalog.pg_proc p
    where p.pronamespace operator(pg_catalog.=) 'public'::regnamespace and p.proname operator(pg_catalog.~) '^${FEED_NAME}_[0-9a-f]{16}$'
      and not exists (select from pg_catalog.pg_trigger t where t.tgfoid operator(pg_catalog.=) p.oid)
  loop
    execute pg_catalog.format('drop function %s', unused);
  end loop;
  if not exists (
    select from pg_catalog.pg_proc p
    where p.pronamespace operator(pg_catalog.=) 'public'::regnamespace and p.proname operator(pg_catalog.~) '^${FEED_NAME}_[0-9a-f]{16}$'
  ) then
    drop table if exists public.${FEED_NAME}, public.${FEED_NAME}_state, public.${FEED_NAME}_mark;
  end if;
end $$`
