-- A scheduled backup waits while another job of its client waits or runs; one for each schedule.
alter table service.backup_job add column waits boolean not null default false;
drop index service.backup_job_active;
create unique index backup_job_active on service.backup_job (client_name) where status in ('pending', 'running') and not waits;
create unique index backup_job_waiting on service.backup_job (schedule) where status = 'pending' and waits;

-- Until when the runs of a schedule were begun, or noted as failed. Without this a run at which no process reached the database is forgotten.
create table service.backup_schedule (
  name text primary key,
  cron text not null,
  seen_until timestamptz not null
);
