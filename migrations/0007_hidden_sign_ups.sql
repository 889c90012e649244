-- With auth.hide_registered_emails a sign-up with an address that has an account looks like any other. What was chosen there is
-- kept, so that sign-in and usernames behave as if the new account were there, unverified.

create table service.hidden_sign_up (
  id uuid primary key,
  -- Who has the address.
  user_id uuid not null references service."user" on delete cascade,
  -- Of an address that is proven the first one stays, as the account would whose place it takes; of later ones the last stays.
  is_first boolean not null,
  username text constraint hidden_sign_up_username_key unique,
  password text not null,
  created_at timestamptz not null,
  constraint hidden_sign_up_place_key unique (user_id, is_first)
);

-- A username belongs to one of both tables. Whoever adds a hidden one waits for those who add a real one, and they for him:
-- each sees what the other has done.
create function service.reserve_username() returns trigger language plpgsql as $$
declare
  is_taken boolean;
begin
  if tg_table_name = 'user' then
    perform pg_advisory_xact_lock_shared(hashtextextended('gatehouse usernames', 0));
    is_taken := exists (select from service.hidden_sign_up where username = new.username);
  else
    perform pg_advisory_xact_lock(hashtextextended('gatehouse usernames', 0));
    is_taken := exists (select from service."user" where username = new.username);
  end if;
  if is_taken then
    raise unique_violation using message = 'the username is taken', constraint = 'user_username_key';
  end if;
  return new;
end $$;
create trigger username_reserved before insert or update of username on service."user"
  for each row when (new.username is not null) execute function service.reserve_username();
create trigger username_reserved before insert or update of username on service.hidden_sign_up
  for each row when (new.username is not null) execute function service.reserve_username();
