-- Backups and restores (gateway.md 15). A job outlives its file; the audit trail outlives the job.
create table service.backup_job (
  id uuid primary key,
  job_type text not null constraint backup_job_type_check check (job_type in ('backup', 'restore')),
  status text not null
    constraint backup_job_status_check check (status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
  client_name text not null,
  label text,
  -- The schedule that has made it; its backups are counted by this name.
  schedule text,
  -- The backup that a restore reads.
  source_id uuid references service.backup_job on delete set null,
  -- dump: of one database by pg_dump. archive: of the whole embedded server.
  format text not null constraint backup_job_format_check check (format in ('dump', 'archive')),
  location text,
  size_bytes bigint,
  sha256 text,
  progress_pct integer not null default 0,
  progress_stage text,
  error_message text,
  cancel_requested boolean not null default false,
  request_id text,
  -- The process that runs it renews the lease; when it has ended, that process is dead.
  lease_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  completed_at timestamptz
);
-- At most one job of a client waits or runs.
create unique index backup_job_active on service.backup_job (client_name) where status in ('pending', 'running');
create index backup_job_by_lease on service.backup_job (lease_until) where status = 'running';
create index backup_job_by_client on service.backup_job (client_name, id);
create index backup_job_by_source on service.backup_job (source_id);
create index backup_job_by_schedule on service.backup_job (schedule, id) where schedule is not null;
create index backup_job_restores on service.backup_job (client_name) where job_type = 'restore' and status = 'running';

-- A client refuses writes while a restore runs. Rows of a restore change seldom, but for their progress.
create trigger backup_job_restore_came after update of status on service.backup_job
  for each row when (new.job_type = 'restore') execute function service.tell_word('backup_restores');
create trigger backup_job_restore_gone after delete on service.backup_job
  for each row when (old.job_type = 'restore') execute function service.tell_word('backup_restores');
