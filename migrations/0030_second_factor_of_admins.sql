-- In an impersonated session the factor of the admin counts, and the user's does not: it has not been asked for.

create or replace function service.end_activity_without_factor() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform from service.organization where id in (
    select active_organization_id from service.session where user_id = new.id and impersonated_by is null
    union select active_organization_id from service.session where impersonated_by = new.id) order by id for share;
  update service.session s set active_organization_id = null from service.organization o, service.session own
    where (s.user_id = new.id and s.impersonated_by is null or s.impersonated_by = new.id)
      and o.id = s.active_organization_id and o.require_two_factor
      and own.id = coalesce(s.parent_session_id, s.id) and not own.user_verified;
  return null;
end $$;

-- Sessions that have the organization active already, without a factor that counts.
update service.session s set active_organization_id = null from service.organization o, service.session own, service."user" u
  where s.impersonated_by is not null and o.id = s.active_organization_id and o.require_two_factor
    and own.id = s.parent_session_id and u.id = own.user_id and not u.two_factor_enabled and not own.user_verified;
