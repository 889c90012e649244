import type { RouteOptions } from 'fastify'
import type { FailureTable } from '../../errors.ts'
import { open } from '../access.ts'
import { EDGE_FAILURES } from '../failures.ts'
import { named } from './components.ts'

/** Where fastify-swagger expects the description of a response. */
export const RESPONSE_DESCRIPTION = 'x-response-description'

/** The responses of a route to failures, by status, with the codes in the description of each. */
export function failureResponses(route: RouteOptions): object {
  const schema = errorOf(route)
  const declared = declaredFailures(route)
  const ranges = [...new Set(declared.map(({ status }) => rangeOf(status)))].sort()
  return Object.fromEntries(
    ranges.map((range) => [
      range,
      {
        ...schema,
        [RESPONSE_DESCRIPTION]: declared
          .filter(({ status }) => rangeOf(status) === range)
          .map(({ code }) => `\`${code}\``)
          .join(', '),
        ...((range === '429' || range === '5XX') && { headers: RETRY_AFTER }),
      },
    ]),
  )
}

/** All failures of the service or a database are one entry. */
const rangeOf = (status: number): string => (status >= 500 ? '5XX' : String(status))

const RETRY_AFTER = {
  'retry-after': { type: 'integer', description: 'Seconds to wait; with 429 and 503' },
}

/** A failure that a route may answer. */
type DeclaredFailure = { readonly status: number; readonly code: string }

/** Every failure that a route may answer: those of its access, its method, its surface, and its own. */
function declaredFailures({ method, url, config = {} }: Route): readonly DeclaredFailure[] {
  const { access = open, failures = [] } = config
  const codes: FailureTable = config.codes ?? EDGE_FAILURES
  const taken = method === 'GET' || method === 'HEAD' ? [] : BODY_FAILURES
  const chosen = config.produces === undefined ? [] : ['not_acceptable']
  const all = [
    ...new Set([...REQUEST_FAILURES, ...chosen, ...taken, ...(access.failures ?? []), ...failures]),
  ]
  return all.map((code) => {
    const row = codes[code] ?? codes[code.toUpperCase()]
    if (row === undefined)
      throw new Error(`${method} ${url} declares ${code}, which no table of failures has`)
    const [status, , shown = codes[code] === undefined ? code.toUpperCase() : code] = row
    return { status, code: shown }
  })
}

type Route = Pick<RouteOptions, 'method' | 'url' | 'config'>

/** Failures of any request, and of a body. */
const REQUEST_FAILURES = [
  'validation_error',
  'invalid_text',
  'headers_too_large',
  'internal_error',
  'service_unavailable',
  'timeout',
]
const BODY_FAILURES = ['invalid_json', 'request_timeout', 'payload_too_large', 'unsupported_media_type']

/** The envelope of a surface, with every code of it. */
function errorOf({ config = {} }: RouteOptions): object {
  const [error, name, example] =
    config.surface === 'auth'
      ? ([AUTH_ERROR, 'AuthErrorCode', 'VALIDATION_ERROR'] as const)
      : ([GATEWAY_ERROR, 'GatewayErrorCode', 'validation_error'] as const)
  const codes = Object.entries(config.codes ?? EDGE_FAILURES).map(([code, [, , shown = code]]) => shown)
  const code = { ...TEXT, ...named(name), enum: [...new Set(codes)].sort(), examples: [example] }
  return { ...error, properties: { ...error.properties, code } }
}

const TEXT = { type: 'string' }
const FACTS = { type: 'object', additionalProperties: true, description: 'Facts for programs' }

const AUTH_ERROR = {
  ...named('AuthError'),
  description: 'A failure of the authentication surface',
  type: 'object',
  required: ['message', 'code'],
  properties: {
    message: { ...TEXT, description: 'A message for users' },
    code: {},
    details: FACTS,
    error: { ...TEXT, description: 'The code of OAuth 2.0, on /device and below' },
    error_description: { ...TEXT, description: 'The message again, beside it' },
  },
}

const GATEWAY_ERROR = {
  ...named('GatewayError'),
  description: 'A failure of the gateway surface',
  type: 'object',
  required: ['status', 'message', 'error', 'code', 'request_id'],
  properties: {
    status: { ...TEXT, const: 'error' },
    message: { ...TEXT, description: 'A message for users' },
    error: { ...TEXT, description: 'Advice, or the message of the database' },
    code: {},
    request_id: { ...TEXT, description: 'Also in the header x-request-id, and in the log' },
    data: {
      type: 'object',
      required: ['operation', 'details'],
      properties: { operation: TEXT, details: FACTS },
    },
  },
}
