import type { FailureDetails, GatewayFailures } from './failure-codes.ts'
import { isObject } from './json.ts'

/** Failures that the client itself finds. Status 0: there was no answer. */
type ClientFailures = {
  /** No answer, or none of a Gatehouse service: then with its status. A write may have happened. */
  network: { status: number; details: FailureDetails }
  /** The signal was aborted. A write may have happened. */
  aborted: { status: 0; details: FailureDetails }
  /** The time of `.timeout()` is over, or the service's (504). A write may have happened. */
  timeout: { status: 0 | 504; details: FailureDetails }
  /** `.single()` or `.maybeSingle()` got another number of rows. Of an update or delete of several rows nothing was done (409). */
  not_one_row: { status: 200 | 409; details: FailureDetails & { readonly rows?: number } }
  /** Live rows have ended for good: `reason` is session_ended, token_expired, key_revoked, expired or too_many. */
  stream_ended: { status: 0; details: FailureDetails & { readonly reason?: string } }
  /** Live rows need `numbers: 'exact'`, since a number cannot hold the primary key. */
  inexact_key: { status: 0; details: FailureDetails }
  /** The session has changed while a query ran. */
  subject_changed: { status: 0; details: FailureDetails }
  /** A repeated write was done before, and its rows were too large to be stored under its key. */
  rows_not_stored: { status: 200; details: FailureDetails & { readonly rows?: number } }
}

type Failures = Omit<GatewayFailures, keyof ClientFailures> & ClientFailures

export type ErrorCode = keyof Failures

/** A failure by its code, with the status and the details that belong to it. */
export interface FailureOf<C extends ErrorCode> extends Error {
  readonly code: C
  /** Of the answer; 0 without one. */
  readonly status: Failures[C]['status']
  readonly details: Failures[C]['details']
  /** Advice, or the words of the database. */
  readonly hint: string | undefined
  /** The id of the request in the log of the service. */
  readonly requestId: string | undefined
  /** Seconds after which the service may be asked again, if it has said so. */
  readonly retryAfter: number | undefined
}

/** Every failure. Its `code` tells them apart; a newer service may send codes that this type does not know. */
export type GatehouseError = { [C in ErrorCode]: FailureOf<C> }[ErrorCode]

type Facts = {
  readonly code: string
  readonly message: string
  readonly status?: number
  readonly details?: object
  readonly hint?: string | undefined
  readonly requestId?: string | undefined
  readonly retryAfter?: number | undefined
  readonly cause?: unknown
}

class RequestError extends Error {
  override readonly name = 'GatehouseError'

  constructor({ message, cause, ...facts }: Facts) {
    super(message, { cause })
    Object.assign(this, { status: 0, details: {} }, facts)
  }
}

/** For `instanceof`, which narrows to the union. */
export const GatehouseError = RequestError as unknown as abstract new () => GatehouseError

// The code of an answer is one of the union, or newer than it.
export const failure = (facts: Facts): GatehouseError => new RequestError(facts) as GatehouseError

/** There was no answer, or the connection broke. */
export const broken = (cause?: unknown): GatehouseError =>
  failure({ code: 'network', message: 'The service cannot be reached, or the connection broke', cause })

/** The failure that an answer reports, which may also be that of a proxy. */
export function refusal({ status, headers }: Response, answer: unknown): GatehouseError {
  const retryAfter = retryAfterOf(headers)
  if (!isEnvelope(answer))
    return failure({
      code: 'network',
      status,
      message: `${status}: not an answer of the service`,
      retryAfter,
    })
  const { code, message, error: hint, request_id: requestId, data } = answer
  return failure({ code, message, status, details: data?.details ?? {}, hint, requestId, retryAfter })
}

type Envelope = {
  readonly code: string
  readonly message: string
  readonly error?: string
  readonly request_id?: string
  readonly data?: { readonly details?: object }
}

const isEnvelope = (answer: unknown): answer is Envelope =>
  isObject(answer) && 'code' in answer && 'message' in answer

/** Seconds. Proxies may send a date (RFC 9110, section 10.2.3). */
function retryAfterOf(headers: Headers): number | undefined {
  const text = headers.get('retry-after') ?? ''
  const seconds = Number(text) || Math.max(0, Date.parse(text) - Date.now()) / 1_000
  return seconds >= 0 ? seconds : undefined
}
