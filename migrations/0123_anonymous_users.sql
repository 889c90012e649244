-- Users without an address, who are added by one request. In place of an address each has a placeholder of a domain that cannot exist
-- (RFC 6761, 6.4). Until a user has an address or a way in, the row can have no role, no second factor and no proof of an address, whatever
-- the statement.
alter table service."user"
  add column is_anonymous boolean not null default false,
  add constraint user_anonymous_has_nothing check (
    not is_anonymous
    or (
      email like '%@anonymous.invalid' and not email_verified and email_proven_at is null and role = 'user'
      and not two_factor_enabled
    )
  );
-- Ids have the time of their creation in front, so this is the order of age.
create index user_anonymous on service."user" (id) where is_anonymous;
