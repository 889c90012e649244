-- The files of backups belong to the installation that has made them. A copy of it lists them, and never removes one: the original may
-- still live. A restore adds these columns too, if its archive is older.
alter table service.backup_job add column if not exists installation_id uuid;
update service.backup_job set installation_id = (select id from service.installation) where installation_id is null;
alter table service.backup_job drop constraint backup_job_status_check;
alter table service.backup_job add constraint backup_job_status_check
  check (status in ('pending', 'running', 'completed', 'failed', 'cancelled', 'foreign'));

-- The backup that this installation was restored from.
alter table service.installation add column if not exists restored_backup uuid;
