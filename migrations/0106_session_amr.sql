-- The ways in which a session has been proven, in the words of RFC 8176, for tokens. They follow `shown` (identity/shown.ts) in the same
-- statement. Null: the session is older than this column, and has shown nothing since.

create function service.amr_of(shown text[]) returns text[] language sql immutable set search_path = pg_catalog, pg_temp as $$
  select array_remove(array[
    case when shown && array['password', 'new password'] then 'pwd' end,
    case when shown && array['totp', 'otp', 'mailed code', 'second mail', 'backup code'] then 'otp' end,
    case when shown && array['passkey', 'new passkey', 'unverified passkey', 'new unverified passkey'] then 'pop' end,
    case when shown && array['passkey', 'new passkey'] then 'user' end,
    -- Shown itself: a trusted device only remembers one, and a passkey that the session has added may be a thief's.
    case when shown && array['totp', 'otp', 'mailed code', 'backup code', 'passkey'] then 'mfa' end
  ], null)
$$;

alter table service.session add column amr text[];

create function service.note_amr() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  new.amr := service.amr_of(new.shown);
  return new;
end $$;
create trigger session_begun before insert on service.session for each row execute function service.note_amr();
create trigger session_shown before update of shown on service.session for each row execute function service.note_amr();
