-- A restore freezes every client of its database (gateway.md 15).

-- The identity of the server and of the database that a running restore replaces; null until it is known.
alter table service.backup_job add column database text;

drop trigger backup_job_restore_came on service.backup_job;
create trigger backup_job_restore_came after update of status, database on service.backup_job
  for each row when (new.job_type = 'restore') execute function service.tell_word('backup_restores');
