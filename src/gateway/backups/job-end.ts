import { Failure } from '#kernel/errors.ts'
import { redactText } from '#kernel/redact.ts'
import { ProgramError } from './dump/run-program.ts'
import { Ended } from './job-lease.ts'

type End = { readonly status: Ended['status']; readonly message: string; readonly isBug: boolean }

/** SQLSTATE data_corrupted: BASE_BACKUP has read a page whose checksum is wrong. */
const CORRUPTED = 'XX001'
const DAMAGED =
  'A file of the database is damaged: a checksum is wrong. Check the disk, keep the backups of before, and restore the last one.'

/** The sentence for the operator. It has no credentials: programs' output is redacted, and other errors are not repeated. */
export function endOf(error: unknown): End {
  if (error instanceof Ended) return { status: error.status, message: error.message, isBug: false }
  const failed = { status: 'failed', isBug: false } as const
  if (error instanceof Failure)
    return { ...failed, message: [error.message, error.hint].filter(Boolean).join('. ') }
  if (error instanceof ProgramError) return { ...failed, message: error.message }
  const { code, syscall, message = 'unknown' } = Object(error) as NodeJS.ErrnoException // whatever was thrown
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return { ...failed, message: 'No space is left on the disk of the backups.' }
  if (code !== undefined && syscall !== undefined)
    return { ...failed, message: `A file of the backup cannot be used (${syscall}: ${code}).` }
  if (code === CORRUPTED) return { ...failed, message: DAMAGED }
  return { ...failed, message: `The job failed: ${redactText(message)}`, isBug: true }
}
