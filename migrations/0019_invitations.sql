-- Invitations to organizations, and columns and indexes for what the verbs on organizations count and look up.

alter table service.organization
  add column require_two_factor boolean not null default false,
  -- Triggers on `member` keep it, so that a limit or a total does not count rows.
  add column member_count integer not null default 0;

create function service.count_members() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'TRUNCATE' then
    update service.organization set member_count = 0;
  elsif tg_op = 'INSERT' then
    update service.organization o set member_count = o.member_count + each.count
      from (select organization_id, count(*) from came group by organization_id) as each where o.id = each.organization_id;
  else
    update service.organization o set member_count = o.member_count - each.count
      from (select organization_id, count(*) from gone group by organization_id) as each where o.id = each.organization_id;
  end if;
  return null;
end $$;
create trigger member_counted after insert on service.member referencing new table as came
  for each statement execute function service.count_members();
create trigger member_discounted after delete on service.member referencing old table as gone
  for each statement execute function service.count_members();
create trigger member_uncounted after truncate on service.member execute function service.count_members();
update service.organization o set member_count = (select count(*) from service.member m where m.organization_id = o.id);

-- Roles are joined by commas.
create index member_by_ownership on service.member (organization_id, user_id) where 'owner' = any (string_to_array(role, ','));

create table service.invitation (
  id uuid primary key,
  organization_id uuid not null references service.organization on delete cascade,
  inviter_id uuid not null references service."user" on delete cascade,
  email text not null,
  role text not null,
  status text not null default 'pending'
    constraint invitation_status check (status in ('pending', 'accepted', 'rejected', 'canceled')),
  expires_at timestamptz not null,
  created_at timestamptz not null
);
create unique index invitation_pending_key on service.invitation (organization_id, email) where status = 'pending';
create index invitation_by_end on service.invitation (organization_id, expires_at) where status = 'pending';
create index invitation_by_age on service.invitation (organization_id, created_at, id);
create index invitation_by_email on service.invitation (email, created_at);
create index invitation_by_inviter on service.invitation (inviter_id);
create index invitation_by_expiry on service.invitation (expires_at);
