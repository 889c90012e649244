import { VALUE_FAILURES } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

/** Whether a statement failed because of a row: without that row it may succeed. */
export const isAboutRows = (failure: Failure): boolean =>
  VALUE_FAILURES.has(failure.code) || failure.code === 'too_complex' || isPolicyViolation(failure)

/** A policy refuses a row with the same code as a missing privilege. The function of the server that reports it is the difference. */
const isPolicyViolation = ({ code, hint, cause }: Failure): boolean =>
  code === 'permission_denied' &&
  (routineOf(cause) === 'ExecWithCheckOptions' || hint?.includes('row-level security policy') === true)

const routineOf = (cause: unknown): unknown =>
  typeof cause === 'object' && cause !== null && 'routine' in cause ? cause.routine : undefined

/** The statement had no effect, and can succeed later. */
export const isTransient = (error: unknown): boolean =>
  error instanceof Failure && (error.code === 'write_conflict' || error.code === 'client_busy')
