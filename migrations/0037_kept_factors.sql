-- An admin has replaced a proven address: the second factor is the owner's, and the first proof of the new address does not remove it
-- (auth.md 10). Else a new address and a reset by mail would remove the factor of anyone.

alter table service."user" add column keeps_factor boolean not null default false;
