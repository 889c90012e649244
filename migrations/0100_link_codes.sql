-- A mailed link may have a code of six digits beside it, which does the same when it is typed (auth.md 4). Both are one row: redeeming the
-- one uses up the other. Wrong codes use up the code, never the link.
alter table service.verification
  -- HMAC over address, purpose and code; random bytes where no mail was sent.
  add column code_hash bytea,
  add column code_expires_at timestamptz,
  -- Hash of a cookie of the browser that asked. It has tries of its own; those of all others are `attempts`.
  add column browser text,
  add column browser_attempts integer not null default 0,
  add constraint verification_code_check
    check ((code_hash is null) = (code_expires_at is null) and (code_hash is null or address is not null));
create index verification_by_code on service.verification (address) where code_hash is not null;
