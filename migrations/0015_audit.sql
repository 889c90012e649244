-- The audit trail of both halves. No foreign keys: a row outlives its subjects. It holds ids, never addresses or names of people.
-- The id is a UUIDv7 of occurred_at, so that one column orders, pages and bounds a listing.
create table service.audit_event (
  id uuid primary key,
  occurred_at timestamptz not null,
  -- The id of a user, `key:` and the id of an API key, or a word: admin-key, cli, system, anonymous.
  actor_id text not null,
  -- The user whom an administrator impersonates.
  on_behalf_of uuid,
  action text not null,
  target_type text,
  target_id text,
  client_name text,
  organization_id uuid,
  ip_address text,
  user_agent text,
  request_id text,
  outcome text not null constraint audit_event_outcome_check check (outcome in ('success', 'failure')),
  -- Of the things that ended, or of the failures in the minute that begins at occurred_at.
  count integer not null,
  details jsonb not null
);
create index audit_event_by_actor on service.audit_event (actor_id, id);
create index audit_event_by_target on service.audit_event (target_id, id);
create index audit_event_by_action on service.audit_event (action, id);
create index audit_event_with_address on service.audit_event (id) where ip_address is not null or user_agent is not null;

-- The count of a failure may grow by one. All other changes are those of the pruning function.
create function service.refuse_audit_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if current_setting('gatehouse.audit_pruning', true) = 'on'
    and current_user = (select pg_get_userbyid(relowner) from pg_class where oid = tg_relid) then
    return coalesce(new, old);
  end if;
  if tg_op = 'UPDATE' and old.outcome = 'failure' and new.count = old.count + 1
    and to_jsonb(new) - 'count' = to_jsonb(old) - 'count' then
    return new;
  end if;
  raise exception 'rows of service.audit_event cannot be changed or deleted: service.prune_audit_events does that by age'
    using errcode = 'insufficient_privilege';
end $$;
create trigger audit_event_unchanged before update or delete on service.audit_event
  for each row execute function service.refuse_audit_change();
create trigger audit_event_kept before truncate on service.audit_event
  for each statement execute function service.refuse_audit_change();

-- Deletes rows older than `keep`, and clears address and user agent of those older than 90 days; at most `most` of each. Returns
-- the larger number. The role that calls it may shorten `keep` to 30 days and no further.
create function service.prune_audit_events(keep interval, most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  deleted integer;
  cleared integer;
begin
  perform set_config('gatehouse.audit_pruning', 'on', true);
  delete from service.audit_event where id in (
    select id from service.audit_event
    where id < service.first_id_at(now() - greatest(keep, interval '30 days')) order by id limit most);
  get diagnostics deleted = row_count;
  update service.audit_event set ip_address = null, user_agent = null where id in (
    select id from service.audit_event
    where (ip_address is not null or user_agent is not null) and id < service.first_id_at(now() - interval '90 days')
    order by id limit most);
  get diagnostics cleared = row_count;
  perform set_config('gatehouse.audit_pruning', 'off', true);
  return greatest(deleted, cleared);
end $$;

-- The smallest UUIDv7 of a time (RFC 9562 section 5.7).
create function service.first_id_at(at timestamptz) returns uuid language sql immutable set search_path = pg_catalog, pg_temp
  return (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid;
