import type { FailureTable } from '#kernel/errors.ts'

/** Failures of backups (gateway.md 15). */
export const BACKUP_FAILURES = {
  backup_not_found: [404, 'There is no such backup or job'],
  backup_file_missing: [404, 'The file of this backup does not exist any more'],
  backup_file_changed: [409, 'The file of this backup is not the one that was written'],
  backup_job_active: [409, 'A backup or a restore of this client already waits or runs'],
  backup_job_ended: [409, 'This job has already ended'],
  backup_not_completed: [409, 'This is not a completed backup'],
  backup_in_use: [409, 'The job still runs, or a restore reads this backup'],
  restore_not_confirmed: [
    400,
    'confirm must repeat client_name, or be true: a restore replaces the data of that client',
  ],
  restore_needs_command: [400, 'This is restored with the service stopped, by gatehouse restore FILE'],
  restore_refused: [400, 'The logging client cannot be restored: its log and audit tables are not rewritten'],
  backup_program_missing: [503, 'A program of PostgreSQL is missing on the machine of the service'],
  backup_disk_full: [503, 'There is too little room on the disk of the backups'],
  backup_store_unavailable: [503, 'The object storage of the backups cannot be used'],
  too_many_downloads: [503, 'Too many backups are being downloaded'],
} as const satisfies FailureTable
