-- Device authorization (RFC 8628): devices that wait for a user's answer. An approval is a ticket of that user (service.verification) with the
-- same hash, so that whatever ends the user's tickets ends it, and its redemption is one statement.
create table service.device_authorization (
  -- SHA-256 of the device code.
  device_hash bytea primary key,
  -- HMAC of the user code, which is short, under a key of its own.
  user_code_hash bytea not null,
  client_id text not null,
  status text not null default 'pending' check (status in ('pending', 'approved', 'denied')),
  -- Milliseconds between two polls. A poll that comes earlier makes it longer, for good.
  poll_interval integer not null,
  next_poll_at timestamptz not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint device_authorization_user_code_key unique (user_code_hash)
);
create index device_authorization_by_expiry on service.device_authorization (expires_at);
