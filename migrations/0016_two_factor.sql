-- Second factors (auth.md 7).

-- A user has at most one factor in force, and one that waits for its first right code.
create table service.two_factor (
  id uuid primary key,
  user_id uuid not null references service."user" on delete cascade,
  in_force boolean not null default false,
  method text not null constraint two_factor_method_check check (method in ('totp', 'otp')),
  -- Of TOTP, sealed. Codes of method otp are one-time tokens (service.verification).
  secret text,
  -- The time step of the last accepted code: a step is accepted once (RFC 6238 section 5.2).
  last_step bigint,
  -- Wrong codes since the last right one.
  failures integer not null default 0,
  locked_until timestamptz,
  -- Until then the mailbox has counted as one factor already, by a reset of the password.
  mail_counted_until timestamptz,
  created_at timestamptz not null,
  constraint two_factor_user_key unique (user_id, in_force),
  constraint two_factor_secret_check check ((secret is not null) = (method = 'totp'))
);

create table service.backup_code (
  two_factor_id uuid not null references service.two_factor on delete cascade,
  -- HMAC-SHA-256: a plain hash of ten characters hides little.
  code_hash bytea not null,
  constraint backup_code_key primary key (two_factor_id, code_hash)
);

-- A browser that needs no second factor. The token in its cookie is replaced at each sign-in.
create table service.trusted_device (
  id uuid primary key,
  user_id uuid not null references service."user" on delete cascade,
  token_hash bytea not null constraint trusted_device_token_key unique,
  expires_at timestamptz not null,
  created_at timestamptz not null
);
create index trusted_device_by_user on service.trusted_device (user_id);
create index trusted_device_by_expiry on service.trusted_device (expires_at);

-- Begun by a passkey with user verification, which counts as two factors.
alter table service.session add column user_verified boolean not null default false;
