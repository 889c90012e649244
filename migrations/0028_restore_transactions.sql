-- The transaction of a restore in the client's database (an xid8, or unknown), noted before it can commit: its end is looked up when the
-- process of the restore has died.
alter table service.backup_job add column transaction_id text;
