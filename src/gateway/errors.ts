import { databaseFailures } from '#databases/failures.ts'
import { type FailureTable, failuresOf } from '#kernel/errors.ts'
import { EDGE_FAILURES } from '#kernel/http/failures.ts'

/** Everything that the gateway half refuses on purpose; what its databases refuse stands in databases/failures.ts. */
export const GATEWAY_FAILURES = {
  ...databaseFailures,
  api_key_required: [401, 'API key required'],
  invalid_api_key: [401, 'Invalid API key'],
  inactive_api_key: [401, 'Inactive API key'],
  expired_api_key: [401, 'Expired API key'],
  ambiguous_api_key: [400, 'The request carries two API keys that differ'],
  api_key_client_mismatch: [403, 'API key client mismatch'],
  insufficient_rights: [403, 'Insufficient API key rights'],
  api_key_validation_unavailable: [503, 'API key validation unavailable'],
  missing_client_header: [400, 'The header X-Service-Client is missing'],
  unknown_client: [400, 'There is no such client'],
  no_client: [503, 'No database client is configured'],
  invalid_right: [400, 'This is not a right'],
  api_key_not_found: [404, 'There is no such API key'],
  audit_unavailable: [503, 'The audit log cannot be written, so nothing was changed'],
} as const satisfies FailureTable

export const fail = failuresOf(GATEWAY_FAILURES)

/** For the error reference. */
export const GATEWAY_CODES: FailureTable = { ...EDGE_FAILURES, ...GATEWAY_FAILURES }
