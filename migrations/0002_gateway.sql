-- What callers reach: registered database clients and the keys that open them.

create table service.api_key (
  id uuid primary key,
  public_id text not null constraint api_key_public_id_key unique,
  name text not null,
  description text,
  -- Null: any client (never for management rights).
  client_name text,
  rights text[] not null,
  client_overrides text[] not null default '{*}',
  salt bytea not null,
  secret_hash bytea not null,
  -- The secret before the last rotation, good until the grace ends.
  previous_salt bytea,
  previous_secret_hash bytea,
  previous_expires_at timestamptz,
  is_active boolean not null default true,
  expires_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index api_key_by_client on service.api_key (client_name, created_at);

create function service.tell_api_key() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse', 'api_key:' || old.public_id);
  return null;
end $$;
create trigger api_key_changed after update or delete on service.api_key
  for each row execute function service.tell_api_key();
