-- Lists of users by role, verification, ban and second factor are in the order of creation. What such a filter leaves is often close together in
-- time (unproven addresses are new ones), so that the order alone would read past all the others.

drop index service.user_listed_by_role;
create index user_listed_by_role on service."user" (role collate "C", created_at, id);
drop index service.user_unproven;
create index user_listed_by_verification on service."user" (email_verified, created_at, id);
drop index service.user_banned;
-- With the end of the ban, so that counting those who are still banned reads no users.
create index user_banned on service."user" (created_at, id) include (ban_expires) where banned;
drop index service.user_with_second_factor;
create index user_with_second_factor on service."user" (created_at, id) where two_factor_enabled;
