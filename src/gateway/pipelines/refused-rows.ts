import { Failure } from '#kernel/errors.ts'

/** Codes of failures that a value of a row causes. The others concern the statement, its caller or the database. */
const ABOUT_ROWS: ReadonlySet<string> = new Set([
  'invalid_value',
  'not_null_violation',
  'check_violation',
  'unique_violation',
  'foreign_key_violation',
  'exclusion_violation',
  'rejected_by_database',
  'too_complex',
])

/** Whether a statement failed because of a row: without that row it may succeed. */
export const isAboutRows = (failure: Failure): boolean =>
  ABOUT_ROWS.has(failure.code) || isPolicyViolation(failure)

/** A policy refuses a row with the same code as a missing privilege. The function of the server that reports it tells them apart. */
const isPolicyViolation = ({ code, hint, cause }: Failure): boolean =>
  code === 'permission_denied' &&
  (routineOf(cause) === 'ExecWithCheckOptions' || hint?.includes('row-level security policy') === true)

const routineOf = (cause: unknown): unknown =>
  typeof cause === 'object' && cause !== null && 'routine' in cause ? cause.routine : undefined

/** The statement had no effect, and can succeed later. */
export const isTransient = (error: unknown): boolean =>
  error instanceof Failure && (error.code === 'write_conflict' || error.code === 'client_busy')
