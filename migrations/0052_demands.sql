-- When the password was set without the one before it: by set-password, a reset or an admin (auth.md 2). Null: at sign-up or import, and
-- for passwords from before this migration. A change inherits it.
alter table service.account add column password_set_at timestamptz;

-- What the users of older sessions had when these began is not known. What they have now is what can be shown again.
update service.session set user_had = service.methods_of(user_id) where user_had = '{}' and impersonated_by is null;

-- The words of identity/shown.ts that are a second factor. `mailed code`: a code by mail where another factor is in force.
create or replace function service.has_shown_factor(shown text[]) returns boolean language sql immutable
  set search_path = pg_catalog, pg_temp as
  $$ select shown && array['totp', 'otp', 'mailed code', 'backup code', 'passkey', 'trusted device'] $$;

create or replace function service.end_activity_without_factor() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  perform service.forget_shown(new.id, array['totp', 'otp', 'mailed code', 'backup code', 'trusted device']);
  return null;
end $$;

-- As before, but what a user had when a session began stays: a demand is judged by that too, whoever has removed the factor. Only the
-- session that removes it forgets it (identity/standing.ts).
create or replace function service.forget_shown(of_user uuid, gone text[]) returns void language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  perform from service.organization where id in (
    select active_organization_id from service.session where user_id = of_user and impersonated_by is null
    union select active_organization_id from service.session where impersonated_by = of_user) order by id for share;
  update service.session set
      shown = array(select word from unnest(shown) with ordinality as each (word, n) where word <> all (gone) order by n)
    where user_id = of_user and shown && gone;
  update service.session s set active_organization_id = null from service.organization o, service.session own
    where (s.user_id = of_user and s.impersonated_by is null or s.impersonated_by = of_user)
      and o.id = s.active_organization_id and o.require_two_factor
      and own.id = coalesce(s.parent_session_id, s.id) and not service.has_shown_factor(own.shown);
end $$;
