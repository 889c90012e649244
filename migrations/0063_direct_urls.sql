-- The address of a registered client past its pooler. Sealed like sealed_url, for a purpose of its own; removed with the client.
alter table service.database_client
  add column sealed_direct_url text,
  add column direct_url_env_var text,
  add constraint database_client_direct_address check (sealed_direct_url is null or direct_url_env_var is null);

drop trigger database_client_changed on service.database_client;
create trigger database_client_changed after update of client_name, driver, description, sealed_url, url_env_var, sealed_direct_url,
    direct_url_env_var, is_active, is_frozen, metadata, updated_at, deleted_at on service.database_client
  for each row when (old.* is distinct from new.*) execute function service.tell_word('database_client');
