-- The organization that was active last in any session of the user is active in a new one (auth.md 9). On the membership, so that it goes with
-- it. An impersonated session changes none.
alter table service.member add column last_active_at timestamptz;
update service.member m set last_active_at = s.at
  from (select user_id, active_organization_id, max(updated_at) as at from service.session
    where active_organization_id is not null and impersonated_by is null group by user_id, active_organization_id) s
  where m.user_id = s.user_id and m.organization_id = s.active_organization_id;
