import { defineFailures, type Failure, type FailureTable } from '#kernel/errors.ts'

/** The body is malformed. */
const BODY = {
  missing_table: [400, 'table_name is missing'],
  invalid_identifier: [400, 'A name is not a usable identifier'],
  invalid_columns: [400, 'columns is not a list of columns'],
  invalid_condition: [400, 'A condition is not well formed'],
  invalid_operator: [400, 'The operator does not fit the column'],
  invalid_cast: [400, 'The type of a cast is not known'],
  invalid_structured_select_request: [400, 'The structured request is not well formed'],
  invalid_sort: [400, 'sort_by is not well formed'],
  invalid_limit: [400, 'limit, offset and pages are whole numbers, not negative'],
  limit_too_large: [400, 'limit is above the maximum'],
  invalid_count: [400, 'count is one of exact, planned, estimated'],
  too_many_columns: [400, 'Too many columns'],
  too_many_conditions: [400, 'Too many conditions'],
  too_deep: [400, 'Nested too deep'],
  too_many_rows: [413, 'Too many rows in one insert'],
  empty_write: [400, 'There is nothing to write'],
  invalid_write: [400, 'The rows to write are not well formed'],
  unbounded_write: [400, 'A write without a condition would change every row'],
  missing_resource_key: [400, 'The table has neither a column resource_id nor a primary key of one column'],
} as const satisfies FailureTable

/** The body is well formed, but a table, column, constraint or privilege of the database does not allow it. */
const CATALOGUE_AND_CONSTRAINTS = {
  unknown_column: [400, 'There is no such column'],
  table_not_found: [404, 'There is no such table'],
  unknown_relation: [400, 'There is no such relation'],
  ambiguous_relation: [400, 'More than one foreign key fits the relation'],
  invalid_conflict_target: [400, 'on_conflict names no primary key or unique constraint'],
  column_not_writable: [400, 'The column is computed by the database'],
  not_null_violation: [400, 'A column that must have a value has none'],
  check_violation: [422, 'A value breaks a rule of the table'],
  unique_violation: [409, 'A row with this value exists already'],
  foreign_key_violation: [409, 'A row that is referred to does not exist, or is still referred to'],
  exclusion_violation: [409, 'A row conflicts with one that exists already'],
  invalid_value: [422, 'A value cannot be converted to the type of its column'],
  rejected_by_database: [400, 'A rule of the database refused the request'],
  not_supported: [400, 'The database does not support this'],
  too_complex: [400, 'The request is too complex for the database'],
  permission_denied: [403, 'The database role of this client may not do this'],
  read_only: [403, 'This client is read-only'],
} as const satisfies FailureTable

/** The caller's own SQL and calls of functions (gateway.md 6, 7). */
const CALLER_SQL = {
  invalid_sql: [400, 'The database does not accept the SQL'],
  function_not_allowed: [403, 'The right to read does not allow this function'],
  function_not_found: [404, 'There is no such function'],
  invalid_arguments: [400, 'The arguments do not fit the function'],
} as const satisfies FailureTable

/** Public routes (gateway.md 13). */
const PUBLIC_ROUTES = {
  outside_route: [403, 'The request goes beyond what this public route allows'],
} as const satisfies FailureTable

/** Transactions, writes of a single row, and groupings (gateway.md 4, 5). */
const TRANSACTIONS = {
  not_one_row: [409, 'More than one row matches, so nothing was written'],
  invalid_transaction: [400, 'The transaction is not well formed'],
  too_many_operations: [400, 'Too many operations in one transaction'],
  invalid_idempotency_key: [400, 'The idempotency key is not usable'],
  idempotency_key_reused: [409, 'This idempotency key was used for another request'],
  idempotency_unavailable: [400, 'This client cannot keep answers under idempotency keys'],
  aggregation_column_required: [400, 'aggregation_strategy needs an aggregation_column'],
  invalid_grouping: [400, 'The grouping is not well formed'],
} as const satisfies FailureTable

/** Management (gateway.md 10). */
const MANAGEMENT = {
  object_exists: [409, 'An object of this name exists already'],
  object_not_found: [404, 'There is no such object'],
  schema_not_found: [404, 'There is no such schema'],
  object_in_use: [409, 'Other objects depend on this one'],
  object_busy: [503, 'The table is in use, so the change could not begin; nothing was changed'],
  reserved_column: [400, 'The service added this column, and it cannot be changed'],
  extension_not_allowed: [400, 'The extension is not on the list of allowed extensions'],
  extension_unavailable: [400, 'The server of this client does not have the extension'],
  invalid_data_type: [400, 'The data type is not allowed'],
  invalid_default: [400, 'The default is neither a literal nor a call of an allowed function'],
  invalid_definition: [400, 'The definition is not valid'],
  invalid_function: [400, 'The function is not one that this client can have'],
  invalid_policy: [400, 'The policy is not one that this table can have'],
  direct_url_missing: [
    503,
    'A pooler answers at the address of this client, and this needs a session of its own',
  ],
  direct_url_unusable: [503, 'The direct_url of this client cannot be used'],
  row_level_security_off: [400, 'This client has no row-level security'],
} as const satisfies FailureTable

/** Live rows (gateway.md 20). */
const LIVE_ROWS = {
  no_primary_key: [400, 'Live rows need a table with a primary key'],
  not_live: [400, 'Changes of this table are not noted'],
} as const satisfies FailureTable

/** The backend failed; the request may be valid. */
const BACKEND = {
  invalid_project: [400, 'This is not a project that custom_supabase reaches'],
  unsupported_by_driver: [400, 'The driver of this client does not support this'],
  write_conflict: [409, 'The write collided with another one; it can be tried again'],
  statement_timeout: [504, 'The database took too long'],
  client_busy: [503, 'All connections of this client are in use'],
  client_unavailable: [503, 'The database of this client is not available'],
  client_refused: [502, 'The database refused the connection of this client'],
  connection_lost: [502, 'The connection to the database broke off'],
  database_error: [502, 'The database failed'],
  result_too_large: [413, 'The result is too large'],
  unsafe_client: [503, 'The database role of this client has more privileges than allowed'],
  roles_unavailable: [503, 'The roles for row-level security of this client cannot be used'],
} as const satisfies FailureTable

/** Every failure of a data operation (gateway.md 1, 4, 10). gateway/errors.ts adds those of the HTTP surface. */
export const DATABASE_FAILURES = {
  ...BODY,
  ...CATALOGUE_AND_CONSTRAINTS,
  ...CALLER_SQL,
  ...PUBLIC_ROUTES,
  ...TRANSACTIONS,
  ...MANAGEMENT,
  ...LIVE_ROWS,
  ...BACKEND,
}

const codesOf = (...tables: FailureTable[]): readonly string[] =>
  tables.flatMap((table) => Object.keys(table))

/**
 * Codes of each kind of operation, for the API reference. A trigger, or a function in a view, can raise the codes
 * of constraints in any of them.
 */
export const FAILURES_OF = {
  data: codesOf(BODY, CATALOGUE_AND_CONSTRAINTS, TRANSACTIONS, BACKEND),
  sql: codesOf(CATALOGUE_AND_CONSTRAINTS, CALLER_SQL, BACKEND),
  call: codesOf(BODY, CATALOGUE_AND_CONSTRAINTS, CALLER_SQL, BACKEND),
  structure: codesOf(CATALOGUE_AND_CONSTRAINTS, MANAGEMENT, LIVE_ROWS, BACKEND),
} as const

export const fail = defineFailures(DATABASE_FAILURES)

/** For an operation that the driver does not support. `operation` is a noun phrase for the message: "casts to arrays". */
export const unsupported = (driver: string, operation: string): Failure =>
  fail('unsupported_by_driver', {
    message: `The driver ${driver} does not support ${operation}`,
    details: { driver, unsupported: operation },
  })

export type DatabaseFailureCode = keyof typeof DATABASE_FAILURES

const CONSTRAINTS = [
  'not_null_violation',
  'check_violation',
  'unique_violation',
  'foreign_key_violation',
  'exclusion_violation',
] as const satisfies readonly DatabaseFailureCode[]
export const CONSTRAINT_FAILURES: ReadonlySet<string> = new Set(CONSTRAINTS)

/** Failures that the values of a row cause, and not the statement, its caller or the database. */
export const VALUE_FAILURES: ReadonlySet<string> = new Set<DatabaseFailureCode>([
  'invalid_value',
  ...CONSTRAINTS,
  'rejected_by_database',
])
