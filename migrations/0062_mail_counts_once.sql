-- A password that was chosen by a mailed link proves no more than the mailbox does, until it was shown together with another factor
-- (auth.md 7). It lasts as long as the password: a change inherits it.
alter table service.account add column password_from_mail boolean not null default false;
update service.account a set password_from_mail = true, password_set_at = coalesce(a.password_set_at, now())
  from service.two_factor f
  where f.user_id = a.user_id and f.mail_counted_until > now() and a.provider_id = 'credential';
alter table service.two_factor drop column mail_counted_until;

-- Words of identity/shown.ts. Both were shown in this session, and the password after it was set.
create function service.settle_password() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  update service.account set password_from_mail = false
    where user_id = new.user_id and provider_id = 'credential' and password_from_mail and password_set_at <= new.password_shown_at;
  return null;
end $$;
create trigger session_settles_password after insert or update of shown, password_shown_at on service.session
  for each row when ('password' = any (new.shown) and new.shown && array['totp', 'backup code', 'passkey'])
  execute function service.settle_password();

create or replace function service.end_activity_without_factor() returns trigger language plpgsql
  set search_path = pg_catalog, pg_temp as $$
begin
  perform service.forget_shown(new.id, array['totp', 'otp', 'mailed code', 'second mail', 'backup code', 'trusted device']);
  return null;
end $$;
