-- When a key was last used, to the minute. Apart from the key itself, whose changes end the copies in every process.
create table service.api_key_use (
  key_id uuid primary key references service.api_key on delete cascade,
  last_used_at timestamptz not null
);
