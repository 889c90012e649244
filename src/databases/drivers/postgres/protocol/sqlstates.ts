import type { DatabaseFailureCode } from '#databases/failures.ts'

/**
 * SQLSTATE to failure code: by the whole code, else by its class (the first two characters).
 * https://www.postgresql.org/docs/18/errcodes-appendix.html
 */
const SQLSTATES: Readonly<Record<string, DatabaseFailureCode>> = {
  '08': 'connection_lost',
  '09': 'rejected_by_database',
  '0A': 'not_supported',
  '10': 'invalid_value',
  '20': 'rejected_by_database', // CASE of a function without an ELSE
  '21': 'invalid_write', // ON CONFLICT affects one row twice
  '22': 'invalid_value',
  '23': 'rejected_by_database',
  '23001': 'foreign_key_violation', // ON DELETE RESTRICT, since 18
  '23502': 'not_null_violation',
  '23503': 'foreign_key_violation',
  '23505': 'unique_violation',
  '23514': 'check_violation',
  '23P01': 'exclusion_violation',
  '25006': 'read_only',
  '25P03': 'connection_lost',
  '25P04': 'statement_timeout',
  '26': 'connection_lost', // a pooler has lost prepared statements twice in a row
  '27': 'rejected_by_database',
  '28': 'client_refused',
  '2B': 'object_in_use',
  '38': 'rejected_by_database', // a function in Perl, Python or Tcl has failed
  '3D': 'client_refused',
  '3F': 'schema_not_found',
  '40': 'write_conflict',
  '42': 'rejected_by_database',
  '42501': 'permission_denied',
  '42601': 'invalid_definition',
  '42602': 'invalid_identifier',
  '42611': 'invalid_definition',
  '42622': 'invalid_identifier',
  '42701': 'object_exists',
  '42703': 'unknown_column',
  '42704': 'object_not_found',
  '42710': 'object_exists',
  '42723': 'object_exists',
  '42725': 'invalid_operator',
  '42804': 'invalid_operator',
  '42830': 'invalid_definition',
  '42846': 'invalid_cast',
  '42883': 'invalid_operator',
  '42939': 'invalid_identifier',
  '428C9': 'column_not_writable',
  '42P01': 'table_not_found',
  '42P06': 'object_exists',
  '42P07': 'object_exists',
  '42P10': 'invalid_conflict_target',
  '42P16': 'invalid_definition',
  '42P17': 'invalid_definition',
  '42P18': 'invalid_value',
  '44': 'check_violation', // WITH CHECK OPTION of a view
  '53': 'client_unavailable',
  '53300': 'client_busy',
  '54': 'too_complex',
  '55': 'not_supported', // a view that is not updatable
  '55006': 'object_in_use',
  '55P03': 'write_conflict',
  '57': 'connection_lost',
  // A timeout or a cancel by an operator: the code does not tell which, and the message is in the server's language. Either way the
  // statement did not end in its time and is undone.
  '57014': 'statement_timeout',
  '57P03': 'client_unavailable',
  '72': 'write_conflict',
  P0: 'rejected_by_database',
}

export function stateOf(code: string): DatabaseFailureCode {
  return (Object.hasOwn(SQLSTATES, code) ? SQLSTATES[code] : SQLSTATES[code.slice(0, 2)]) ?? 'database_error'
}

/**
 * A function or trigger has refused the request by an SQLSTATE of its own, or by one of connections. PostgREST does not tell that it was RAISE:
 * there a class that the server has not shows it.
 */
export const isPretended = (
  { code, routine }: { readonly code: string; readonly routine?: string },
  state: DatabaseFailureCode,
): boolean => INVENTED.test(code) || (routine === 'exec_stmt_raise' && OF_CONNECTION.has(state))

/** An SQLSTATE of a class that the server has not. https://www.postgresql.org/docs/18/errcodes-appendix.html */
const INVENTED = /^(?!0[0-389ABFLPZ]|10|2[0-8BDF]|3[489BDF]|4[024]|5[34578]|72|F0|HV|P0|XX)[0-9A-Z]{5}$/

const OF_CONNECTION: ReadonlySet<DatabaseFailureCode> = new Set([
  'client_busy',
  'client_refused',
  'client_unavailable',
  'connection_lost',
  'database_error',
])
