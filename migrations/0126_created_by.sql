-- The user by whose session a record was made that acts for others afterwards. Null: by the admin key or a command. Without a reference, as in
-- the audit trail: the record outlives the user.
alter table service.api_key add column created_by uuid;
alter table service.webhook add column created_by uuid;
alter table service.public_route add column created_by uuid;
