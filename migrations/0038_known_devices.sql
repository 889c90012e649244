-- Known devices (auth.md 11): browsers that have signed in to an account. Their wrong passwords and codes, and the mails that they ask for,
-- count apart from those of strangers. They are no credential.
create table service.known_device (
  id uuid primary key,
  user_id uuid not null references service."user" on delete cascade,
  -- SHA-256 of the browser's identifier, which is the same for all accounts that it has signed in to.
  device_hash bytea not null,
  -- 180 days after the last sign-in.
  expires_at timestamptz not null,
  created_at timestamptz not null,
  constraint known_device_key unique (user_id, device_hash)
);
create index known_device_by_device on service.known_device (device_hash);
create index known_device_by_expiry on service.known_device (expires_at);
