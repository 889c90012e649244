import {
  CONSTRAINT_FAILURES,
  DATABASE_FAILURES,
  type DatabaseFailureCode,
  fail,
} from '#databases/failures.ts'
import type { Rights } from '#databases/plan/rights.ts'
import { comparisons } from '#databases/request/conditions.ts'
import type { DataRequest } from '#databases/request/request.ts'
import type { Failure } from '#kernel/errors.ts'

/**
 * Reduces a failure to the information that its caller may read. Messages of the database quote values, and name columns, constraints and
 * referring tables. A caller without the right to read the table gets the code, and the column only if the request names it. `request` is
 * undefined for a failure of a whole transaction. A caller of a public route may read only a part of the table, and is not told its name.
 */
export function redactFailure(rights: Rights, failure: Failure, request: DataRequest | undefined): Failure {
  if (request?.scope !== undefined) return redactText(failure, request)
  const requested = request && { ...request.table, action: 'read' as const }
  const other = otherTable(failure)
  const isVisible = [requested, other].every((right) => right === undefined || rights.may(right))
  return isVisible || !isAboutData(failure.code) ? failure : redactText(failure, request)
}

/** Removes the text even for a caller who may read every table that the failure could name. */
export function redactText(failure: Failure, request?: DataRequest): Failure {
  if (!isAboutData(failure.code)) return failure
  const column = failure.details?.column
  // Refusals of constraints may depend on rows outside of a public route.
  const isHidden = request?.scope !== undefined && CONSTRAINT_FAILURES.has(failure.code)
  const isOwn = !isHidden && typeof column === 'string' && request !== undefined && names(request, column)
  return fail(failure.code, {
    cause: failure.cause,
    details: {
      ...(request &&
        request.scope === undefined && {
          schema_name: request.table.schema,
          table_name: request.table.table,
        }),
      ...(isOwn && { column }),
    },
  })
}

/** Drivers name the table of a failure when it is not the table of the statement. */
function otherTable({ details }: Failure) {
  // Drivers write it in this form.
  const other = details?.other_table as { schema_name: string; table_name: string } | undefined
  return other && { schema: other.schema_name, table: other.table_name, action: 'read' as const }
}

const isAboutData = (code: string): code is DatabaseFailureCode =>
  Object.hasOwn(DATABASE_FAILURES, code) && !OPERATIONAL.has(code)

/** Failures of the service and the connection: their messages are written by the gateway. */
const OPERATIONAL: ReadonlySet<string> = new Set<DatabaseFailureCode>([
  'write_conflict',
  'statement_timeout',
  'client_busy',
  'client_unavailable',
  'client_refused',
  'connection_lost',
  'database_error',
  'result_too_large',
  'unsafe_client',
  'roles_unavailable',
  'read_only',
  'unsupported_by_driver',
  'too_many_operations',
])

function names(request: DataRequest, column: string): boolean {
  if ('columns' in request && request.columns.some((term) => term.kind === 'column' && term.name === column))
    return true
  if ('sort' in request && request.sort.some((term) => term.column === column)) return true
  if (request.kind === 'insert' && request.rows.some((row) => Object.hasOwn(row, column))) return true
  if (request.kind === 'insert') return Object.hasOwn(request.conflict?.update ?? {}, column)
  if (request.kind === 'update' && Object.hasOwn(request.set, column)) return true
  return 'where' in request && comparisons(request.where).some((comparison) => comparison.column === column)
}
