-- Orders and filters of list-users: each column by code points, and by id among equal ones, so that a page reads its own rows only.

create index user_listed_by_email on service."user" (email collate "C", id);
create index user_listed_by_name on service."user" (lower(name) collate "C", id);
create index user_listed_by_username on service."user" (username collate "C", id);
create index user_listed_by_role on service."user" (role collate "C", id);
create index user_listed_by_creation on service."user" (created_at, id);
create index user_listed_by_change on service."user" (updated_at, id);
create index user_listed_by_ban_end on service."user" (ban_expires, id) where ban_expires is not null;
create index user_banned on service."user" (id) where banned;
create index user_unproven on service."user" (id) where not email_verified;
create index user_with_second_factor on service."user" (id) where two_factor_enabled;
