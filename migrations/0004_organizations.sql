-- Whose behalf a session acts on: organizations, who belongs to them, and the active one of each session.

create table service.organization (
  id uuid primary key,
  name text not null,
  slug text not null constraint organization_slug_key unique,
  logo text,
  metadata jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create table service.member (
  id uuid primary key,
  organization_id uuid not null references service.organization on delete cascade,
  user_id uuid not null references service."user" on delete cascade,
  -- Several are joined by commas.
  role text not null,
  created_at timestamptz not null,
  constraint member_key unique (organization_id, user_id)
);
create index member_by_user on service.member (user_id);
create index member_by_age on service.member (organization_id, created_at, id);

-- A session is active only where its user is a member: whoever leaves or is removed is out at once.
alter table service.session
  add column active_organization_id uuid,
  add constraint session_membership_key foreign key (active_organization_id, user_id)
    references service.member (organization_id, user_id) on delete set null (active_organization_id);
create index session_by_organization on service.session (active_organization_id, user_id)
  where active_organization_id is not null;

create function service.tell_member() returns trigger language plpgsql as $$
begin
  perform pg_notify('gatehouse', 'user:' || old.user_id);
  return null;
end $$;
create trigger member_changed after update or delete on service.member
  for each row execute function service.tell_member();
