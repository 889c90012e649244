-- Whether a session has a second factor is judged by what it has shown, not by what its user has: another one's enrolment, or the
-- owner's elsewhere, changes nothing for it (auth.md 7). A session from before has shown nothing.

-- The words of identity/shown.ts that are a second factor.
create function service.has_shown_factor(shown text[]) returns boolean language sql immutable set search_path = pg_catalog, pg_temp as
  $$ select shown && array['totp', 'otp', 'backup code', 'passkey', 'trusted device'] $$;

-- After factors are gone: they count in no session any more, and a session that has shown them is as one of a user who never had them.
-- An organization that requires a second factor ends to be active in sessions that have none left, and in impersonations by them. It may
-- begin to require the factor in a transaction that has not ended: wait for it, and then look.
create function service.forget_shown(of_user uuid, gone text[]) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform from service.organization where id in (
    select active_organization_id from service.session where user_id = of_user and impersonated_by is null
    union select active_organization_id from service.session where impersonated_by = of_user) order by id for share;
  update service.session set
      shown = array(select word from unnest(shown) with ordinality as each (word, n) where word <> all (gone) order by n),
      user_had = array(select word from unnest(user_had) with ordinality as each (word, n) where word <> all (gone) order by n)
    where user_id = of_user and shown && gone;
  update service.session s set active_organization_id = null from service.organization o, service.session own
    where (s.user_id = of_user and s.impersonated_by is null or s.impersonated_by = of_user)
      and o.id = s.active_organization_id and o.require_two_factor
      and own.id = coalesce(s.parent_session_id, s.id) and not service.has_shown_factor(own.shown);
end $$;

create or replace function service.end_activity_without_factor() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform service.forget_shown(new.id, array['totp', 'otp', 'backup code', 'trusted device']);
  return null;
end $$;

create function service.forget_passkeys() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  of_user uuid;
begin
  for of_user in select distinct user_id from gone where user_id not in (select user_id from service.passkey) order by user_id loop
    perform service.forget_shown(of_user, array['passkey']);
  end loop;
  return null;
end $$;
create trigger passkey_gone after delete on service.passkey referencing old table as gone
  for each statement execute function service.forget_passkeys();

alter table service.session drop column user_verified;

update service.session s set active_organization_id = null from service.organization o, service.session own
  where o.id = s.active_organization_id and o.require_two_factor
    and own.id = coalesce(s.parent_session_id, s.id) and not service.has_shown_factor(own.shown);
