import { defineFailures, type Failure } from '../errors.ts'
import { HEADER } from './header-names.ts'

/**
 * Failures before a verb is called, the same on both surfaces. Codes are spelled as on the gateway;
 * the authentication surface shows them in capitals.
 */
export const EDGE_FAILURES = {
  validation_error: [400, 'The request is not valid'],
  invalid_json: [400, 'The body is not valid JSON'],
  invalid_text: [400, 'The request holds a NUL character or broken Unicode'],
  not_found: [404, 'There is nothing at this address'],
  method_not_allowed: [405, 'This address does not take that method'],
  not_acceptable: [406, 'The answer has none of the media types that the header Accept names'],
  request_timeout: [408, 'The request did not arrive in time'],
  another_user: [409, 'The session is of another user than the request expects; nothing was done'],
  payload_too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'Send the body as application/json'],
  misdirected_request: [
    421,
    'This page answers only to a browser on the same machine, at localhost or the configured address',
  ],
  headers_too_large: [431, 'The headers are too large'],
  too_many_requests: [429, 'Too many requests; try again later'],
  internal_error: [500, 'Something went wrong on our side'],
  service_unavailable: [503, 'The service cannot reach its database; try again shortly'],
  timeout: [504, 'The request took too long'],
} as const

export const edge = defineFailures(EDGE_FAILURES, { not_found: 'GET / lists the addresses of this service' })

/** Headers of a 429 or 503: the wait in whole seconds. */
export const retryAfter = (seconds: number): Readonly<Record<string, string>> => ({
  'retry-after': String(seconds),
  [HEADER.retryAfter]: String(seconds),
})

/** 429 with the wait in whole seconds. */
export function tooMany(milliseconds: number): Failure {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1_000))
  const hint = seconds === 1 ? 'Try again in a second' : `Try again in ${seconds} seconds`
  return edge('too_many_requests', { hint, headers: retryAfter(seconds) })
}

/** `part`: body or querystring. */
export const misspeltMember = (
  { path, meant }: { readonly path: string; readonly meant: string },
  part = 'body',
) =>
  edge('validation_error', {
    message: `There is no ${part === 'body' ? 'member' : 'parameter'} ${path}; did you mean ${meant}?`,
    details: { field: path, in: part },
  })
