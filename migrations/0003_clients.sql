-- Clients that are registered over HTTP, and where data operations need a key.

create table service.database_client (
  id uuid primary key,
  client_name text not null,
  driver text not null,
  description text,
  -- Sealed (AES-256-GCM, v1.KEYID.DATA): it holds a password. Removed with the client.
  sealed_url text,
  url_env_var text,
  is_active boolean not null default true,
  is_frozen boolean not null default false,
  metadata jsonb not null default '{}',
  last_seen_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  constraint database_client_address check (deleted_at is not null or (sealed_url is null) <> (url_env_var is null))
);
create unique index database_client_name_key on service.database_client (client_name) where deleted_at is null;

create function service.tell_database_client() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse', 'database_client');
  return null;
end $$;
-- Not for last_seen_at, which changes all the time and decides nothing.
create trigger database_client_changed after insert or delete or update of client_name, driver, description, sealed_url,
    url_env_var, is_active, is_frozen, metadata, updated_at, deleted_at on service.database_client
  for each row execute function service.tell_database_client();

-- What was decided at run time over the configuration. Name '*': wherever nothing more special is said.
create table service.api_key_config (
  client_name text primary key,
  enforce_api_keys boolean not null,
  updated_at timestamptz not null
);

create function service.tell_api_key_config() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse', 'api_key_config');
  return null;
end $$;
create trigger api_key_config_changed after insert or update or delete on service.api_key_config
  for each row execute function service.tell_api_key_config();
