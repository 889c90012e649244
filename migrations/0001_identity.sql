-- Who is calling: users, their ways of signing in, their sessions, and one-time tokens.

create table service."user" (
  id uuid primary key,
  name text not null,
  email text not null constraint user_email_key unique,
  email_verified boolean not null default false,
  image text,
  username text constraint user_username_key unique,
  display_username text,
  role text not null default 'user',
  two_factor_enabled boolean not null default false,
  banned boolean not null default false,
  ban_reason text,
  ban_expires timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- One row a way of signing in; provider 'credential' holds the password hash (PHC string).
create table service.account (
  id uuid primary key,
  user_id uuid not null references service."user" on delete cascade,
  provider_id text not null,
  account_id text not null,
  password text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint account_provider_key unique (provider_id, account_id)
);
create index account_by_user on service.account (user_id);

-- The token itself is nowhere: only its SHA-256.
create table service.session (
  id uuid primary key,
  token_hash bytea not null constraint session_token_key unique,
  user_id uuid not null references service."user" on delete cascade,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  remembered boolean not null,
  ip_address text,
  user_agent text
);
create index session_by_user on service.session (user_id, created_at, id);
create index session_by_expiry on service.session (expires_at);

-- One-time tokens by purpose, consumed by DELETE … RETURNING.
create table service.verification (
  value_hash bytea primary key,
  purpose text not null,
  user_id uuid not null references service."user" on delete cascade,
  payload jsonb not null default '{}',
  expires_at timestamptz not null,
  created_at timestamptz not null
);
create index verification_by_user on service.verification (user_id);
create index verification_by_expiry on service.verification (expires_at);

-- Shape that rate-limiter-flexible expects: key, points used, and the end of the window in Unix milliseconds.
create unlogged table service.rate_limit (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);
create index rate_limit_by_expiry on service.rate_limit (expire);

-- A process may answer from its caches while its lease runs (docs/architecture.md, "Coherence"). Unlogged: a crash of
-- the server ends every listener too, and with it every use of a cache.
create unlogged table service.process_lease (
  id uuid primary key,
  expires_at timestamptz not null
);

-- Whatever changes these rows, through the service or by hand, tells every process at commit.
create function service.tell_session() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse', 'session:' || old.id);
  return null;
end $$;
create trigger session_changed after update or delete on service.session
  for each row execute function service.tell_session();

create function service.tell_user() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse', 'user:' || old.id);
  return null;
end $$;
create trigger user_changed after update or delete on service."user"
  for each row execute function service.tell_user();
