-- TRUNCATE fires no trigger for deletion, and an operator who ends every session may use it. It names no rows, so that every
-- process forgets all that it holds.

create function service.tell_all() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse', 'all');
  return null;
end $$;
create trigger session_emptied after truncate on service.session execute function service.tell_all();
create trigger user_emptied after truncate on service."user" execute function service.tell_all();
create trigger member_emptied after truncate on service.member execute function service.tell_all();
create trigger api_key_emptied after truncate on service.api_key execute function service.tell_all();
create trigger api_key_config_emptied after truncate on service.api_key_config execute function service.tell_all();
create trigger database_client_emptied after truncate on service.database_client execute function service.tell_all();
