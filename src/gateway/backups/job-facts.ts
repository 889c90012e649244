import type { BackupJob } from '#kernel/events.ts'
import type { JobRow } from './store.ts'

/** A job in events. */
export const factsOf = ({ id, jobType, clientName, label, requestId }: JobRow): BackupJob => ({
  client: clientName,
  request_id: requestId,
  job_id: id,
  job_type: jobType as BackupJob['job_type'], // the table's check
  label,
})

/** A job in answers (gateway.md 15). */
export const recordOf = (job: JobRow) => ({
  id: job.id,
  job_type: job.jobType as BackupJob['job_type'], // the table's check
  status: job.status as 'pending', // the table's check; the schema has them all
  client_name: job.clientName,
  label: job.label,
  location: job.location,
  size_bytes: job.sizeBytes === null ? null : Number(job.sizeBytes),
  progress_pct: job.progressPct,
  progress_stage: job.progressStage,
  error_message: job.errorMessage,
  created_at: job.createdAt,
  updated_at: job.updatedAt,
  completed_at: job.completedAt,
})
