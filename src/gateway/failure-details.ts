import { type TSchema, Type } from 'typebox'
import type { GatewayCode } from './errors.ts'

type Members = Readonly<Record<string, TSchema>>

const Text = Type.String()
const Texts = Type.Array(Text)
const Whole = Type.Integer()
const TextOrNull = Type.Union([Text, Type.Null()])

/** Added to every failure of an operation in a transaction. */
export const OPERATION_DETAILS = { operation_id: Text, operation_index: Whole } as const satisfies Members

const TABLE = { schema_name: Text, table_name: Text }
const COLUMN = { ...TABLE, column: Text, field: Text }
/** Of a statement that the database refuses. SQLSTATE and place: the statement is the caller's own text. */
const REFUSED = {
  ...TABLE,
  column: Text,
  columns: Texts,
  constraint: Text,
  other_table: Type.Object(TABLE),
  sqlstate: Text,
  position: Whole,
  line: Whole,
}
const BOUND = { field: Text, maximum: Whole, given: Whole }
const ROUTINE = { schema_name: Text, function_name: Text }
const RIGHTS = { required_right: Text, required_rights: Texts }
const Dependent = Type.Object({ type: Text, schema_name: TextOrNull, table_name: TextOrNull, name: Text })

/**
 * Members of `data.details` that programs rely on, for the types of the client. Any of them may be missing: it does not apply, or its caller
 * may not see it. Members that are not listed are for people.
 */
export const FAILURE_DETAILS: Partial<Record<GatewayCode, Members>> = {
  validation_error: { field: Text, in: Text },
  not_acceptable: { available: Texts },
  payload_too_large: { maximum_bytes: Whole, maximum_values: Whole },
  insufficient_rights: RIGHTS,
  session_not_fresh: { accepts: Texts },
  missing_client_header: { missing_header: Text },
  missing_project_header: { missing_header: Text, missing_headers: Texts },
  too_many_streams: { maximum: Whole, setting: Text },
  table_not_found: TABLE,
  unknown_column: { ...COLUMN, did_you_mean: Text },
  column_not_writable: COLUMN,
  unknown_relation: { ...TABLE, relation: Text },
  ambiguous_relation: { ...TABLE, relation: Text, candidates: Texts },
  not_null_violation: REFUSED,
  check_violation: REFUSED,
  unique_violation: REFUSED,
  foreign_key_violation: REFUSED,
  exclusion_violation: REFUSED,
  invalid_value: REFUSED,
  rejected_by_database: REFUSED,
  permission_denied: REFUSED,
  invalid_sql: { field: Text, sqlstate: Text, position: Whole, line: Whole },
  function_not_allowed: { functions: Texts },
  function_not_found: ROUTINE,
  invalid_arguments: { ...ROUTINE, given: Texts, signatures: Texts },
  unsupported_by_driver: { driver: Text, unsupported: Text },
  result_too_large: { maximum: Whole, maximum_bytes: Whole },
  too_many_columns: BOUND,
  too_many_conditions: BOUND,
  too_many_rows: BOUND,
  too_many_operations: BOUND,
  object_in_use: { dependents: Type.Array(Dependent), hidden_dependents: Whole },
}
