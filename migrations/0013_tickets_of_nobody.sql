-- A one-time token may belong to nobody: the state of a sign-in whose user is not known yet. Tickets that can be guessed, such as
-- codes of six digits, count their attempts.

alter table service.verification
  alter column address drop not null,
  add column attempts integer not null default 0,
  add constraint verification_address_check check (address is not null or (user_id is null and session_id is null));
drop index service.verification_by_address;
create index verification_by_address on service.verification (address) where user_id is null and address is not null;
