-- An organization that requires a second factor is active only in sessions with one. So whatever takes a user's factor away ends that
-- activity, but for sessions begun by a passkey with user verification.

create function service.end_activity_without_factor() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  update service.session s set active_organization_id = null from service.organization o
    where s.user_id = new.id and o.id = s.active_organization_id and o.require_two_factor and not s.user_verified;
  return null;
end $$;
create trigger user_without_factor after update of two_factor_enabled on service."user"
  for each row when (old.two_factor_enabled and not new.two_factor_enabled) execute function service.end_activity_without_factor();
