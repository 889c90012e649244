-- A commit that notifies holds a lock of the whole server. Not notified any more: columns that no cache holds, and the pruning of expired
-- sessions, which no process believes, since each looks at the end that it holds, and that is never later.

-- Arguments: the word of the tag, the column that names a row in it, and columns that no cache holds.
create or replace function service.tell_rows() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
  unseen constant text[] := coalesce(tg_argv[2], '{}');
begin
  if tg_op = 'DELETE' then
    perform service.tell(array(select tg_argv[0] || ':' || (to_jsonb(gone) ->> tg_argv[1]) from gone));
  else
    perform service.tell(array(
      select tg_argv[0] || ':' || (to_jsonb(gone) ->> tg_argv[1]) from gone left join came using (id)
      where to_jsonb(gone) - unseen is distinct from to_jsonb(came) - unseen));
  end if;
  return null;
end $$;

drop trigger user_changed on service."user";
create trigger user_changed after update on service."user" referencing old table as gone new table as came
  for each statement execute function
    service.tell_rows('user', 'id', '{permission_lost_at,keeps_factor,verified_by_admin,devices_ended_at}');
drop trigger member_changed on service.member;
create trigger member_changed after update on service.member referencing old table as gone new table as came
  for each statement execute function service.tell_rows('user', 'user_id', '{last_active_at}');

create or replace function service.tell_sessions() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
  -- Said by the statement, since a clock that has jumped must not keep the end of a session secret.
  is_pruning constant boolean := coalesce(current_setting('gatehouse.prunes_sessions', true), '') = 'on';
begin
  if tg_op = 'DELETE' then
    -- A session that ends with a pruned one may have an end of its own that is still to come.
    perform service.tell(array(
      select 'session:' || id from gone where not is_pruning or expires_at > clock_timestamp()));
  else
    perform service.tell(array(
      select 'session:' || gone.id from gone left join came using (id)
      where came.id is null or came.expires_at < gone.expires_at
        or to_jsonb(gone) - '{expires_at,updated_at,origin_session_id}'::text[]
          <> to_jsonb(came) - '{expires_at,updated_at,origin_session_id}'::text[]));
  end if;
  return null;
end $$;
