-- `email_verified` is the word of an admin, on an account that a stranger may have opened: it lets in, and an account of a provider with
-- the same address is not linked by it (auth.md 6 and 10).

alter table service."user" add column verified_by_admin boolean not null default false;
