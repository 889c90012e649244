-- A session that an admin has begun for another user ends with the admin's own session, its parent.

alter table service.session
  add column impersonated_by uuid,
  add column parent_session_id uuid references service.session on delete cascade,
  add constraint session_impersonation check ((impersonated_by is null) = (parent_session_id is null));
create index session_by_parent on service.session (parent_session_id) where parent_session_id is not null;
create index session_by_impersonator on service.session (impersonated_by) where impersonated_by is not null;

-- Roles are joined by commas.
create index user_by_admin on service."user" (id) where 'admin' = any (string_to_array(role, ','));
