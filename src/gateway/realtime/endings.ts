import { Failure } from '#kernel/errors.ts'
import { end, reset } from './event-text.ts'

/** Codes of failures by which a caller loses a stream, and the event that says so. */
const ENDINGS: Readonly<Record<string, string>> = {
  invalid_session: end('session_ended'),
  session_required: end('session_ended'),
  two_factor_required: end('session_ended'),
  jwt_invalid: end('session_ended'),
  jwt_issuer_unknown: end('session_ended'),
  api_key_required: end('key_revoked'),
  invalid_api_key: end('key_revoked'),
  inactive_api_key: end('key_revoked'),
  expired_api_key: end('expired'),
  jwt_expired: end('token_expired'),
  too_many_streams: reset('too_many'),
  client_frozen: reset('restored'),
  client_changed: reset('table_changed'),
  policy_not_live: reset('policy_changed'),
  insufficient_rights: reset('rights_changed'),
  caller_changed: reset('rights_changed'),
  public_route_not_found: reset('rights_changed'),
}

/**
 * The last event of a stream whose caller would be refused now. Undefined when it could not be found out; then the connection ends without a
 * word, and its reader asks again.
 */
export function endingOf(error: unknown): string | undefined {
  if (!(error instanceof Failure) || error.status >= 500) return undefined
  return ENDINGS[error.code] ?? reset(error.status === 403 ? 'rights_changed' : 'table_changed')
}
