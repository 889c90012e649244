import { type About, failureOf, IN_DOUBT } from '#databases/drivers/postgres/protocol/errors.ts'
import { codeOf } from '#databases/drivers/postgres/protocol/query-errors.ts'
import type { WrittenValues } from '#databases/drivers/postgres/protocol/refused-column.ts'
import type { Mask } from '#databases/drivers/supabase/masking.ts'
import { type DatabaseFailureCode, fail } from '#databases/failures.ts'
import type { Column, Table } from '#databases/plan/catalogue.ts'
import { Failure } from '#kernel/errors.ts'
import type { OutboundAnswer } from '#kernel/http/outbound/outbound.ts'

/**
 * PostgREST's own codes; SQLSTATEs that it passes on are translated as for PostgreSQL.
 * https://docs.postgrest.org/en/v13/references/errors.html
 */
const CODES: Readonly<Record<string, DatabaseFailureCode>> = {
  PGRST000: 'client_unavailable',
  PGRST001: 'client_unavailable',
  PGRST002: 'client_unavailable',
  PGRST003: 'client_busy',
  PGRST100: 'not_supported', // an older version does not parse this driver's requests
  PGRST101: 'not_supported',
  PGRST102: 'invalid_write',
  PGRST106: 'table_not_found', // the schema is not exposed
  PGRST107: 'not_supported',
  PGRST108: 'not_supported',
  PGRST109: 'not_supported',
  PGRST110: 'not_supported',
  PGRST117: 'not_supported',
  PGRST118: 'not_supported',
  PGRST120: 'not_supported',
  PGRST122: 'not_supported',
  PGRST123: 'not_supported',
  PGRST125: 'client_refused', // not a path of PostgREST
  PGRST126: 'client_refused', // the OpenAPI document is off
  PGRST127: 'not_supported',
  PGRST200: 'unknown_relation',
  PGRST201: 'ambiguous_relation',
  PGRST202: 'function_not_found',
  PGRST203: 'invalid_arguments',
  PGRST204: 'unknown_column',
  PGRST205: 'table_not_found',
  PGRST300: 'client_refused',
  PGRST301: 'client_refused',
  PGRST302: 'client_refused',
  PGRST303: 'client_refused',
}

/** Answers without a code come from a proxy before PostgREST. */
const STATUSES: Readonly<Record<number, DatabaseFailureCode>> = {
  401: 'client_refused',
  403: 'client_refused',
  404: 'client_refused',
  408: 'statement_timeout',
  413: 'too_complex',
  414: 'too_complex',
  429: 'client_busy',
  431: 'too_complex',
  503: 'client_unavailable',
  504: 'statement_timeout',
}

/** Facts about a request, so that its failure can name a column. */
export type Subject = {
  readonly table: Table | undefined
  readonly compared: readonly Column[]
  readonly written: readonly Column[]
  /** Values that the request gives for the column. */
  readonly given: WrittenValues['given']
}

type ReportedError = { readonly code: string; readonly message: string; readonly details: string }

/** Converts a refusal of the backend to a Failure without its address and key. */
export function refusalOf(answer: OutboundAnswer, mask: Mask, subject?: Subject): Failure {
  const reported = reportedBy(answer, mask)
  if (reported === undefined || reported.code === '')
    return fail(STATUSES[answer.status] ?? 'database_error', {
      // A proxy before PostgREST may have lost its answer.
      ...(answer.status >= 500 && answer.status !== 503 && { hint: IN_DOUBT }),
      cause: new Error(`The backend answered ${answer.status}`),
    })
  const cause = serverError(reported)
  if (!reported.code.startsWith('PGRST')) return stateFailure(cause, reported, subject)
  const code = Object.hasOwn(CODES, reported.code) ? CODES[reported.code] : undefined
  return fail(code ?? 'database_error', { cause, ...(isOfRequest(code) && { hint: reported.message }) })
}

const isOfRequest = (code: DatabaseFailureCode | undefined): boolean =>
  code !== undefined && !/^(client|database)_/.test(code)

function stateFailure(cause: Error, reported: ReportedError, subject: Subject | undefined): Failure {
  const about: About = {
    table: subject?.table,
    parameters: [],
    termPositions: [],
    written: [...(subject?.written ?? []), ...(subject?.compared ?? [])],
    given: subject?.given ?? (() => []),
  }
  const failure = failureOf(Object.assign(cause, { severity: 'ERROR', ...named(reported, subject) }), about)
  // It has a severity and a code, so it is treated as an error of the server.
  return failure instanceof Failure ? failure : fail('database_error', { cause })
}

/** Extracts from messages the facts that the server has in separate fields. */
function named({ code, message, details }: ReportedError, subject: Subject | undefined) {
  const [, constraint] = /constraint "([^"]+)"/.exec(message) ?? []
  const [, quoted] = /column "([^"]+)"/.exec(message) ?? []
  const [, key] = /^Key \(([^,)]+)\)=/.exec(details) ?? []
  const [, referring] = /foreign key constraint "[^"]+" on table "([^"]+)"/.exec(message) ?? []
  const column = quoted ?? key ?? suspect(code, subject)
  return {
    ...(constraint !== undefined && { constraint }),
    ...(column !== undefined && { column }),
    ...(referring !== undefined && { schema: subject?.table?.schema, table: referring }),
  }
}

/** For an operator that does not fit or a number that is too long: the only column that it can concern. */
function suspect(code: string, subject: Subject | undefined): string | undefined {
  if (subject === undefined) return undefined
  const { compared, written } = subject
  if (code === '42883' && compared.length === 1) return compared[0]?.name
  const numeric = written.filter(({ base }) => base === 'numeric')
  return code === '22003' && numeric.length === 1 && written.every(({ base }) => !base.startsWith('int'))
    ? numeric[0]?.name
    : undefined
}

const serverError = ({ code, message, details }: ReportedError): Error =>
  Object.assign(new Error(message), { code, detail: details })

function reportedBy({ headers, body }: OutboundAnswer, mask: Mask): ReportedError | undefined {
  if (!isJson(headers) || body.length > 65_536) return undefined
  try {
    const { code, message, details } = JSON.parse(body.toString()) ?? {}
    return {
      code: textOrEmpty(code),
      message: mask(textOrEmpty(message)),
      details: mask(textOrEmpty(details)),
    }
  } catch {
    // It claims JSON but is not: only its status counts.
    return undefined
  }
}

const textOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '')

export const isJson = (headers: OutboundAnswer['headers']): boolean =>
  /^application\/([\w.+-]+\+)?json\b/i.test(String(headers['content-type'] ?? ''))

/** A name of the plan no longer exists. */
export const hasMoved = ({ cause }: Failure): boolean => MOVED.has(codeOf(cause))
const MOVED = new Set(['42703', '42P01', 'PGRST200', 'PGRST204', 'PGRST205'])

/** The failure of a request without an answer. */
export function lossOf(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof Failure) return error
  if (error.name === 'TimeoutError') return fail('statement_timeout', { hint: IN_DOUBT, cause: error })
  const code = codeOf(error)
  if (NEVER_SENT.test(code)) return fail('client_unavailable', { cause: error })
  if (TLS.test(code)) return fail('client_refused', { cause: error })
  // Also an answer that is not HTTP, which undici reports by name without a code.
  return fail('connection_lost', { hint: IN_DOUBT, cause: error })
}

const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/
/** Errors of certificates have their own codes. https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const TLS =
  /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_|HOSTNAME_MISMATCH|ERROR_IN_|PATH_LENGTH_)/
