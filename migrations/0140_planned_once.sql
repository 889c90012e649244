-- PostgreSQL plans a function in SQL that cannot be inlined at each call, and one in PL/pgSQL once a connection. These two run in every sign-in.

create or replace function service.amr_of(shown text[]) returns text[] language plpgsql immutable
  set search_path = pg_catalog, pg_temp as $$
begin
  return array_remove(array[
    case when shown && array['password', 'new password'] then 'pwd' end,
    case when shown && array['totp', 'otp', 'mailed code', 'second mail', 'backup code'] then 'otp' end,
    case when shown && array['passkey', 'new passkey', 'unverified passkey', 'new unverified passkey'] then 'pop' end,
    case when shown && array['passkey', 'new passkey'] then 'user' end,
    -- Shown itself: a trusted device only remembers one, and a passkey that the session has added may be a thief's.
    case when shown && array['totp', 'otp', 'mailed code', 'backup code', 'passkey'] then 'mfa' end
  ], null);
end $$;

create or replace function service.methods_of(of_user uuid, up_to timestamptz default 'infinity') returns text[]
  language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return array(
    select case a.provider_id when 'credential' then 'password' else 'provider:' || a.provider_id end
      from service.account a where a.user_id = of_user and (a.provider_id <> 'credential' or a.password is not null)
        and a.created_at <= up_to
    union select 'passkey' from service.passkey p where p.user_id = of_user and p.created_at <= up_to
    union select f.method from service.two_factor f where f.user_id = of_user and f.in_force);
end $$;
