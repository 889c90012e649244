-- A one-time token belongs to the session that asked for it, where one did, and ends with it, whatever ends it. It is
-- good for one address: the one that it was mailed to. Open tickets do not say theirs: who needs one asks for another.

delete from service.verification;
alter table service.verification
  add column session_id uuid references service.session on delete cascade,
  add column address text not null;
create index verification_by_session on service.verification (session_id) where session_id is not null;
