-- A passkey, an account of a provider or a password that is added while a session lives proves nothing in it: who has stolen the session may
-- have added it (auth.md 2). `up_to`: only the methods that have been there by then, but for the second factor.
drop function service.methods_of(uuid);
create function service.methods_of(of_user uuid, up_to timestamptz default 'infinity') returns text[] language sql stable
  set search_path = pg_catalog, pg_temp as $$
  select array(
    select case a.provider_id when 'credential' then 'password' else 'provider:' || a.provider_id end
      from service.account a where a.user_id = of_user and (a.provider_id <> 'credential' or a.password is not null)
        and a.created_at <= up_to
    union select 'passkey' from service.passkey p where p.user_id = of_user and p.created_at <= up_to
    union select f.method from service.two_factor f where f.user_id = of_user and f.in_force)
$$;

-- A required factor is shown by a passkey that this session has added, too.
create or replace function service.has_shown_factor(shown text[]) returns boolean language sql immutable
  set search_path = pg_catalog, pg_temp as
  $$ select shown && array['totp', 'otp', 'mailed code', 'backup code', 'passkey', 'new passkey', 'trusted device'] $$;

create or replace function service.forget_passkeys() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  of_user uuid;
begin
  for of_user in select distinct user_id from gone where user_id not in (select user_id from service.passkey) order by user_id loop
    perform service.forget_shown(of_user, array['passkey', 'new passkey']);
  end loop;
  return null;
end $$;
