import { DATABASE_FAILURES } from '#databases/failures.ts'
import { defineFailures, type FailureTable } from '#kernel/errors.ts'
import { EDGE_FAILURES } from '#kernel/http/failures.ts'
import { HEADER, shownHeader } from '#kernel/http/header-names.ts'
import { BACKUP_FAILURES } from './backups/failures.ts'
import { REALTIME_FAILURES } from './realtime/failures.ts'
import { STORAGE_FAILURES } from './storage/failures.ts'

/** Expected failures of the gateway. Failures of databases are in databases/failures.ts. */
const GATEWAY_FAILURES = {
  ...DATABASE_FAILURES,
  api_key_required: [401, 'API key required'],
  invalid_api_key: [401, 'Invalid API key'],
  inactive_api_key: [401, 'Inactive API key'],
  expired_api_key: [401, 'Expired API key'],
  ambiguous_api_key: [400, 'The request contains two different API keys'],
  api_key_client_mismatch: [403, 'API key client mismatch'],
  insufficient_rights: [403, 'Insufficient API key rights'],
  api_key_validation_unavailable: [503, 'API key validation unavailable'],
  session_required: [401, 'A session is required'],
  session_not_fresh: [403, 'Show again who you are, by one of details.accepts; or sign in again'],
  invalid_session: [401, 'The session is invalid or has ended'],
  jwt_expired: [401, 'The JWT has expired'],
  jwt_invalid: [401, 'The JWT is not valid'],
  jwt_issuer_unknown: [401, 'This client does not accept JWTs of this issuer'],
  issuer_unavailable: [503, 'The keys of the issuer of the JWT are not available; try again shortly'],
  two_factor_required: [403, 'This account needs a second factor; set one up first'],
  ambiguous_session: [400, 'The request contains two different sessions'],
  sql_with_session: [400, 'SQL cannot run as a session'],
  not_while_impersonating: [403, 'An impersonated session may only read'],
  invalid_origin: [
    403,
    'This origin may not use the session: it is neither server.public_url nor in auth.trusted_origins',
  ],
  missing_or_null_origin: [403, 'The request has no valid Origin header'],
  missing_client_header: [400, `The header ${shownHeader(HEADER.client)} is missing`],
  missing_project_header: [
    400,
    `The client custom_supabase requires the headers ${HEADER.projectUrl} and ${HEADER.projectKey}`,
  ],
  unknown_client: [400, 'There is no such client'],
  no_client: [503, 'No database client is configured'],
  invalid_client_name: [400, 'Invalid client name'],
  invalid_client_url: [400, 'Invalid database URL for a client'],
  refused_client: [400, 'The database rejects this URL', 'client_refused'],
  unsafe_new_client: [
    400,
    'The database role of this client has more privileges than allowed',
    'unsafe_client',
  ],
  client_exists: [409, 'A client with this name already exists'],
  client_configured: [409, 'This client is configured by the operator and cannot be changed over HTTP'],
  client_not_found: [404, 'There is no such client'],
  row_level_security_configured: [409, 'The configuration decides about row-level security of this client'],
  client_frozen: [403, 'This client is frozen and rejects writes'],
  api_key_client_not_found: [404, 'This client has no run-time setting'],
  invalid_right: [400, 'Unknown right'],
  api_key_not_found: [404, 'There is no such API key'],
  invalid_insert_window: [
    400,
    `${shownHeader(HEADER.insertWindow)} must be a whole number of milliseconds from 1 to the maximum`,
  ],
  driver_mismatch: [400, 'The client has a different driver'],
  ...STORAGE_FAILURES,
  unknown_pipeline: [400, 'There is no such pipeline'],
  invalid_pipeline: [400, 'The pipeline is not well formed'],
  too_many_groups: [413, 'The pipeline has too many groups'],
  too_many_runs: [503, 'Too many pipelines are running'],
  pipeline_timeout: [504, 'The pipeline took too long'],
  pipeline_stopped: [503, 'The service stops, and the pipeline with it'],
  invalid_import: [400, 'The import is not well formed'],
  invalid_file: [400, 'The file is not well formed'],
  too_many_imports: [503, 'Too many imports are running'],
  import_timeout: [504, 'The import took too long'],
  import_stopped: [503, 'The service stops, and the import with it'],
  caller_changed: [409, 'The session has changed during the operation'],
  client_changed: [409, 'The client has been given another database during the operation'],
  user_not_found: [404, 'There is no such user'],
  not_a_member: [400, 'The user is no member of this organization'],
  unknown_operation: [400, 'The operation is one of query, fetch, insert, update, delete, subscribe'],
  public_route_not_found: [404, 'There is no such public route'],
  public_route_exists: [409, 'A public route with this key already exists'],
  invalid_public_route: [400, 'The public route is not well formed'],
  route_inactive: [403, 'This public route is inactive'],
  operation_not_allowed: [403, 'This public route does not allow this operation'],
  webhook_not_found: [404, 'There is no such webhook'],
  invalid_webhook: [400, 'The webhook is not valid'],
  webhook_inactive: [409, 'This webhook is inactive; activate it first'],
  webhook_unreadable: [
    409,
    'The secret of this webhook was sealed under another SERVICE_SECRET; rotate it and set its headers again',
  ],
  delivery_not_found: [404, 'There is no such delivery'],
  delivery_in_flight: [409, 'An attempt of this delivery is under way'],
  invalid_webhook_url: [400, 'The address of the webhook is refused'],
  ...BACKUP_FAILURES,
  ...REALTIME_FAILURES,
  audit_unavailable: [503, 'The audit log cannot be written, so nothing was changed'],
} as const satisfies FailureTable

/** Sent as `error`, unless a failure has advice of its own. */
export const fail = defineFailures(GATEWAY_FAILURES, {
  api_key_required: `Send the key in the header ${HEADER.apiKey}, or as Authorization: Bearer`,
  invalid_api_key: 'The key is unknown, revoked or incomplete: it begins with svc_ and has one dot',
  session_required: `With ${HEADER.serviceSession}, send a session as Authorization: Bearer, or the cookie of a sign-in with that header, from a page of the service`,
  session_not_fresh: 'POST {auth_url}/reauthenticate; the proof counts for ten minutes',
  missing_client_header: 'Name a client in it, like default',
  api_key_client_mismatch: 'The key is bound to another client',
  unknown_pipeline:
    'GET /pipelines/templates lists them; a changed file of pipelines counts after SIGHUP or a new start',
  invalid_ticket: 'POST /realtime/tickets gives another one',
  key_in_query: `Send the key in the header ${HEADER.apiKey}, or open the stream by a ticket`,
  sql_with_session: 'Send it without the session, or use a data operation or a function',
})

const KEY_FAILURES: readonly string[] = [
  'api_key_required',
  'invalid_api_key',
  'inactive_api_key',
  'expired_api_key',
  'ambiguous_api_key',
  'api_key_validation_unavailable',
  'insufficient_rights',
  'too_many_requests',
  // Of a session in place of a key.
  'session_required',
  'invalid_session',
  'another_user',
  'ambiguous_session',
  'session_not_fresh',
  'two_factor_required',
  'not_while_impersonating',
  'invalid_origin',
  'missing_or_null_origin',
]
const CLIENT_FAILURES: readonly string[] = [
  'missing_client_header',
  'missing_project_header',
  'invalid_project',
  'unknown_client',
  'no_client',
  'unsafe_client',
  'api_key_client_mismatch',
  'client_frozen',
  'read_only',
]
/** Of row-level security alone; those of sessions are in KEY_FAILURES. */
const ROLE_FAILURES: readonly string[] = [
  'jwt_expired',
  'jwt_invalid',
  'jwt_issuer_unknown',
  'issuer_unavailable',
  'roles_unavailable',
]
const WITH_CLIENT = [...KEY_FAILURES, ...CLIENT_FAILURES]

/** Possible failures of each access rule (access.ts), for the API reference. */
export const REFUSED = {
  withKey: KEY_FAILURES,
  asAdminOfClient: [...KEY_FAILURES, 'missing_client_header', 'unknown_client', 'no_client'],
  withClient: WITH_CLIENT,
  asData: [...WITH_CLIENT, ...ROLE_FAILURES],
  asSql: [...WITH_CLIENT, ...ROLE_FAILURES, 'sql_with_session'],
  asPublic: [
    ...WITH_CLIENT,
    ...ROLE_FAILURES,
    'unknown_operation',
    'public_route_not_found',
    'route_inactive',
    'operation_not_allowed',
  ],
} as const

export type GatewayCode = keyof typeof EDGE_FAILURES | keyof typeof GATEWAY_FAILURES

/** All codes of the gateway, for the error reference. */
export const GATEWAY_CODES: FailureTable = { ...EDGE_FAILURES, ...GATEWAY_FAILURES }
