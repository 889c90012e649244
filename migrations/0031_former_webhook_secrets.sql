-- Each rotation leaves a secret that goes on signing for a day, so several rotations within a day leave several (gateway.md 12).

drop trigger webhook_changed on service.webhook;

alter table service.webhook
  -- Sealed as sealed_secret is, oldest first.
  add column sealed_former_secrets text[] not null default '{}',
  -- The end of each.
  add column former_secrets_until timestamptz[] not null default '{}';
update service.webhook
  set sealed_former_secrets = array[sealed_previous_secret], former_secrets_until = array[previous_secret_until]
  where sealed_previous_secret is not null and previous_secret_until is not null;
alter table service.webhook
  drop column sealed_previous_secret,
  drop column previous_secret_until,
  add constraint webhook_former_secrets check (cardinality(sealed_former_secrets) = cardinality(former_secrets_until));

create trigger webhook_changed after update of client_name, route_key, table_name, url, description, is_active, sealed_headers,
    sealed_secret, sealed_former_secrets, former_secrets_until, filter, timeout_ms, disabled_reason, updated_at, deleted_at on service.webhook
  for each row when (old.* is distinct from new.*) execute function service.tell_word('webhook');
