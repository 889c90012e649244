-- When a change of role took an admin permission from the user. For some days no other admin gets hold of the account (auth.md 10):
-- else a demotion, a new password and a promotion make the account of an admin another's.

alter table service."user" add column permission_lost_at timestamptz;
