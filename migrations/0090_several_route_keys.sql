-- A webhook may be of several events (gateway.md 12).

drop trigger webhook_changed on service.webhook;

-- Each is the name of an event, `gateway.*` and the like, or `*`.
alter table service.webhook add column route_keys text[];
update service.webhook set route_keys = array[route_key];
alter table service.webhook
  drop column route_key,
  alter column route_keys set not null,
  add constraint webhook_route_keys check (cardinality(route_keys) > 0);

create trigger webhook_changed after update of client_name, route_keys, table_name, url, description, is_active, sealed_headers,
    sealed_secret, sealed_former_secrets, former_secrets_until, filter, timeout_ms, disabled_reason, updated_at, deleted_at on service.webhook
  for each row when (old.* is distinct from new.*) execute function service.tell_word('webhook');
