-- Every hidden sign-up is kept, and none takes the place of an earlier one: an address shows by nothing that it had an account at first.
-- The salt of its password follows from the address, so that one hash is compared with them all.

delete from service.hidden_sign_up;
alter table service.hidden_sign_up drop constraint hidden_sign_up_place_key, drop column is_first;
create index hidden_sign_up_password on service.hidden_sign_up (user_id, password);
