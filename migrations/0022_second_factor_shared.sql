-- The organization may begin to require the factor in a transaction that has not ended: wait for it, and then look.

create or replace function service.end_activity_without_factor() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform from service.organization
    where id in (select active_organization_id from service.session where user_id = new.id) order by id for share;
  update service.session s set active_organization_id = null from service.organization o
    where s.user_id = new.id and o.id = s.active_organization_id and o.require_two_factor and not s.user_verified;
  return null;
end $$;
