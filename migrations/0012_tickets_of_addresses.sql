-- A one-time token may belong to an address in place of a user: whoever has the address when the token is redeemed, with an
-- account or without one yet.

alter table service.verification alter column user_id drop not null;
create index verification_by_address on service.verification (address) where user_id is null;
