-- NOTIFY takes a lock on the whole server until its commit is on disk. So it is sent only where a cache would be wrong
-- without it, and once a statement: one message names all rows, whatever their number.

create function service.tell(tags text[]) returns void language plpgsql as $$
begin
  -- A payload has less than 8,000 bytes; a tag has at most 50.
  perform pg_notify('gatehouse', 'tags ' || string_agg(tag, ' '))
    from (select tag, (row_number() over () - 1) / 150 as message from (select distinct unnest(tags)) as each (tag)) as numbered
    group by message;
end $$;

-- An end that moves further away needs no word: a process that holds the old one looks again when that has come.
create function service.tell_sessions() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform service.tell(array(select 'session:' || id from gone));
  else
    perform service.tell(array(
      select 'session:' || gone.id from gone left join came using (id)
      where came.id is null or came.expires_at < gone.expires_at
        or to_jsonb(gone) - '{expires_at,updated_at}'::text[] <> to_jsonb(came) - '{expires_at,updated_at}'::text[]));
  end if;
  return null;
end $$;
drop trigger session_changed on service.session;
drop function service.tell_session();
create trigger session_gone after delete on service.session referencing old table as gone
  for each statement execute function service.tell_sessions();
create trigger session_changed after update on service.session referencing old table as gone new table as came
  for each statement execute function service.tell_sessions();

create function service.tell_users() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform service.tell(array(select 'user:' || id from gone));
  else
    perform service.tell(array(
      select 'user:' || gone.id from gone left join came using (id) where to_jsonb(gone) is distinct from to_jsonb(came)));
  end if;
  return null;
end $$;
drop trigger user_changed on service."user";
drop function service.tell_user();
create trigger user_gone after delete on service."user" referencing old table as gone
  for each statement execute function service.tell_users();
create trigger user_changed after update on service."user" referencing old table as gone new table as came
  for each statement execute function service.tell_users();

create function service.tell_members() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform service.tell(array(select 'user:' || user_id from gone));
  else
    perform service.tell(array(
      select 'user:' || gone.user_id from gone left join came using (id)
      where to_jsonb(gone) is distinct from to_jsonb(came)));
  end if;
  return null;
end $$;
drop trigger member_changed on service.member;
drop function service.tell_member();
create trigger member_gone after delete on service.member referencing old table as gone
  for each statement execute function service.tell_members();
create trigger member_changed after update on service.member referencing old table as gone new table as came
  for each statement execute function service.tell_members();

create function service.tell_api_keys() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform service.tell(array(select 'api_key:' || public_id from gone));
  else
    perform service.tell(array(
      select 'api_key:' || gone.public_id from gone left join came using (id)
      where to_jsonb(gone) is distinct from to_jsonb(came)));
  end if;
  return null;
end $$;
drop trigger api_key_changed on service.api_key;
drop function service.tell_api_key();
create trigger api_key_gone after delete on service.api_key referencing old table as gone
  for each statement execute function service.tell_api_keys();
create trigger api_key_changed after update on service.api_key referencing old table as gone new table as came
  for each statement execute function service.tell_api_keys();

-- These two say the same for every row, which Postgres sends once a transaction.
drop trigger database_client_changed on service.database_client;
create trigger database_client_came_or_went after insert or delete on service.database_client
  for each row execute function service.tell_database_client();
create trigger database_client_changed after update of client_name, driver, description, sealed_url, url_env_var, is_active,
    is_frozen, metadata, updated_at, deleted_at on service.database_client
  for each row when (old.* is distinct from new.*) execute function service.tell_database_client();

drop trigger api_key_config_changed on service.api_key_config;
create trigger api_key_config_came_or_went after insert or delete on service.api_key_config
  for each row execute function service.tell_api_key_config();
create trigger api_key_config_changed after update on service.api_key_config
  for each row when (old.* is distinct from new.*) execute function service.tell_api_key_config();
