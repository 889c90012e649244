-- The domain that a passkey was made for: it is a way in at this domain only (auth.md 6). Null: registered before this was kept. It is taken
-- for one of the domain of today, which few installations ever change, and the next use of the passkey writes it down.
alter table service.passkey add column rp_id text;
