-- Functions of triggers run under the search_path of whoever changes a row, also by hand. Each names its own, so that nothing
-- else there is taken for a function of PostgreSQL. And one tells of all tables, where there were five of one shape.

-- Arguments: the word of the tag, and the column that names a row in it.
create function service.tell_rows() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' then
    perform service.tell(array(select tg_argv[0] || ':' || (to_jsonb(gone) ->> tg_argv[1]) from gone));
  else
    perform service.tell(array(
      select tg_argv[0] || ':' || (to_jsonb(gone) ->> tg_argv[1]) from gone left join came using (id)
      where to_jsonb(gone) is distinct from to_jsonb(came)));
  end if;
  return null;
end $$;

drop trigger user_gone on service."user";
drop trigger user_changed on service."user";
drop function service.tell_users();
create trigger user_gone after delete on service."user" referencing old table as gone
  for each statement execute function service.tell_rows('user', 'id');
create trigger user_changed after update on service."user" referencing old table as gone new table as came
  for each statement execute function service.tell_rows('user', 'id');

drop trigger member_gone on service.member;
drop trigger member_changed on service.member;
drop function service.tell_members();
create trigger member_gone after delete on service.member referencing old table as gone
  for each statement execute function service.tell_rows('user', 'user_id');
create trigger member_changed after update on service.member referencing old table as gone new table as came
  for each statement execute function service.tell_rows('user', 'user_id');

drop trigger api_key_gone on service.api_key;
drop trigger api_key_changed on service.api_key;
drop function service.tell_api_keys();
create trigger api_key_gone after delete on service.api_key referencing old table as gone
  for each statement execute function service.tell_rows('api_key', 'public_id');
create trigger api_key_changed after update on service.api_key referencing old table as gone new table as came
  for each statement execute function service.tell_rows('api_key', 'public_id');

-- A whole table has one tag; Postgres sends the same message once a transaction. Argument: the message.
create function service.tell_word() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_notify('gatehouse', tg_argv[0]);
  return null;
end $$;

drop trigger database_client_came_or_went on service.database_client;
drop trigger database_client_changed on service.database_client;
drop function service.tell_database_client();
create trigger database_client_came_or_went after insert or delete on service.database_client
  for each row execute function service.tell_word('database_client');
create trigger database_client_changed after update of client_name, driver, description, sealed_url, url_env_var, is_active,
    is_frozen, metadata, updated_at, deleted_at on service.database_client
  for each row when (old.* is distinct from new.*) execute function service.tell_word('database_client');

drop trigger api_key_config_came_or_went on service.api_key_config;
drop trigger api_key_config_changed on service.api_key_config;
drop function service.tell_api_key_config();
create trigger api_key_config_came_or_went after insert or delete on service.api_key_config
  for each row execute function service.tell_word('api_key_config');
create trigger api_key_config_changed after update on service.api_key_config
  for each row when (old.* is distinct from new.*) execute function service.tell_word('api_key_config');

drop trigger session_emptied on service.session;
drop trigger user_emptied on service."user";
drop trigger member_emptied on service.member;
drop trigger api_key_emptied on service.api_key;
drop trigger api_key_config_emptied on service.api_key_config;
drop trigger database_client_emptied on service.database_client;
drop function service.tell_all();
create trigger session_emptied after truncate on service.session execute function service.tell_word('all');
create trigger user_emptied after truncate on service."user" execute function service.tell_word('all');
create trigger member_emptied after truncate on service.member execute function service.tell_word('all');
create trigger api_key_emptied after truncate on service.api_key execute function service.tell_word('all');
create trigger api_key_config_emptied after truncate on service.api_key_config execute function service.tell_word('all');
create trigger database_client_emptied after truncate on service.database_client execute function service.tell_word('all');

alter function service.tell(text[]) set search_path = pg_catalog, pg_temp;
alter function service.tell_sessions() set search_path = pg_catalog, pg_temp;
alter function service.reserve_username() set search_path = pg_catalog, pg_temp;
