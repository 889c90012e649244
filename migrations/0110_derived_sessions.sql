-- A session that was begun with a one-time token of another one, its origin, ends with it. It has the age and the proofs of its origin
-- (identity/derived-sessions.ts). `parent_session_id` is that of an impersonated session.
alter table service.session add column origin_session_id uuid references service.session on delete cascade;
create index session_by_origin on service.session (origin_session_id) where origin_session_id is not null;
