-- The mail of an invitation carries a secret, which shows that its reader has the address (auth.md 9). Invitations from before have none.
alter table service.invitation add column secret_hash bytea;

-- The session that added the row: the first proof of the address in that session keeps it. No reference, since the session may end before.
alter table service.invitation add column added_by uuid;
alter table service.passkey add column added_by uuid;
alter table service.two_factor add column added_by uuid;
-- Null: the provider's account that the user was added with, or a row from before.
alter table service.account add column added_by uuid;
