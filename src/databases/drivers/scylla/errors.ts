import { errors, types } from 'cassandra-driver'
import { type DatabaseFailureCode, fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

/**
 * Error of the server to failure code. Codes of the native protocol, version 4, section 9, and two of version 5.
 * https://github.com/apache/cassandra/blob/trunk/doc/native_protocol_v5.spec
 */
const RESPONSES = new Map<number, DatabaseFailureCode>([
  [0x0000, 'database_error'], // server error
  [0x000a, 'database_error'], // protocol error
  [0x0100, 'client_refused'], // bad credentials
  [0x1000, 'client_unavailable'], // not enough replicas
  [0x1001, 'client_busy'], // overloaded
  [0x1002, 'client_unavailable'], // is bootstrapping
  [0x1003, 'database_error'], // truncate
  [0x1100, 'statement_timeout'], // write
  [0x1200, 'statement_timeout'], // read
  [0x1300, 'database_error'], // read failure
  [0x1400, 'rejected_by_database'], // a function failed
  [0x1500, 'database_error'], // write failure
  [0x1600, 'database_error'], // CDC
  [0x1700, 'statement_timeout'], // outcome of a conditional write is unknown
  [0x2000, 'invalid_definition'], // syntax
  [0x2100, 'permission_denied'],
  [0x2200, 'rejected_by_database'], // invalid
  [0x2300, 'rejected_by_database'], // configuration
  [0x2400, 'object_exists'],
  [0x2500, 'database_error'], // not prepared, twice in a row
])

const BAD_CREDENTIALS = 0x0100
const UNAVAILABLE = 0x1000
const UNAUTHORIZED = 0x2100
const INVALID = 0x2200
const UNPREPARED = 0x2500

/** Codes whose message of the server helps the caller and contains nothing that they did not write or may not read. */
const QUOTED_CODES: ReadonlySet<DatabaseFailureCode> = new Set([
  'rejected_by_database',
  'invalid_definition',
  'object_exists',
])

/** Only the answer of a write shows that it was done. */
const DOUBTFUL: ReadonlySet<DatabaseFailureCode> = new Set([
  'statement_timeout',
  'connection_lost',
  'database_error',
])

/** Converts an error of the server, the network or the library to a Failure without statement, host or credentials. */
export function failureOf(thrown: unknown, isWrite: boolean): unknown {
  if (thrown instanceof Failure) return thrown
  const error = reasonOf(thrown)
  const code = codeOf(error)
  if (code === undefined) return error
  const isDoubtful = isWrite && (DOUBTFUL.has(code) || isLateUnavailable(error))
  const hint = QUOTED_CODES.has(code) ? messageOf(error) : isDoubtful ? DOUBT : undefined
  return fail(code, {
    cause: error,
    ...(hint !== undefined && { hint }),
    ...((code === 'client_unavailable' || code === 'client_busy') && { headers: SOON }),
  })
}

/**
 * A conditional write is decided at a serial level, and too few nodes may be found after that. Replicas that failed may have stored it too.
 */
const isLateUnavailable = (error: unknown): boolean =>
  error instanceof errors.ResponseError &&
  (areReplicasSick(error) || (error.code === UNAVAILABLE && !isSerial(error)))

const isSerial = (error: errors.ResponseError): boolean =>
  'consistencies' in error &&
  (error.consistencies === types.consistencies.serial ||
    error.consistencies === types.consistencies.localSerial)

const SOON = { 'retry-after': '1' }
const DOUBT = 'It is not known whether the write was done.'

/**
 * The server stores roles and rights in its own tables. When too few nodes answer for these, it reports refused credentials or a refused
 * statement; only the message has the reason.
 */
const isUnsure = ({ code, message }: errors.ResponseError): boolean =>
  (code === BAD_CREDENTIALS || code === UNAUTHORIZED) &&
  /unable to perform auth|cannot achieve consistency|timed out|could not verify/i.test(message)

/** Replicas that failed for a reason other than the statement. Cassandra names the reasons; ScyllaDB does not. */
const areReplicasSick = ({ code, message }: errors.ResponseError): boolean =>
  (code === 0x1300 || code === 0x1500) && /TIMEOUT|NODE_DOWN|INDEX_NOT_AVAILABLE|INDEX_BUILD/.test(message)

/** The server limits the size of a write but has no code for it. */
const isTooLarge = ({ code, message }: errors.ResponseError): boolean =>
  code === INVALID && /too large|exceeds? (?:the )?(?:max|limit)/i.test(message)

/** A name of the statement no longer exists. */
export const hasMoved = (failure: Failure): boolean =>
  isUnprepared(failure) ||
  (isInvalid(failure) && /undefined|unconfigured|unknown|does ?n[o']t exist/i.test(messageOf(failure.cause)))

/** The statement was prepared before and cannot be again, because tables or columns are gone. The library hides the server's reason. */
export const isUnprepared = (failure: Failure): boolean =>
  failure.cause instanceof errors.ResponseError && failure.cause.code === UNPREPARED

/** The server rejects a valid statement of the gateway. */
export const isInvalid = (failure: Failure): boolean =>
  failure.cause instanceof errors.ResponseError && failure.cause.code === INVALID

/** The failure of connecting: the keyspace may not be used or does not exist, or no node answers. */
export function connectFailureOf(error: unknown): unknown {
  const reason = reasonOf(error)
  if (reason instanceof errors.OperationTimedOutError)
    return fail('client_unavailable', { cause: error, headers: SOON })
  const isRejected =
    reason instanceof errors.ResponseError &&
    !isUnsure(reason) &&
    [UNAUTHORIZED, INVALID].includes(reason.code)
  return isRejected ? fail('client_refused', { cause: error }) : failureOf(error, false)
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : '')

/** Undefined: not an error of the server or the network, so a bug. */
function codeOf(error: unknown): DatabaseFailureCode | undefined {
  if (error instanceof errors.ResponseError) return codeOfAnswer(error)
  if (error instanceof errors.OperationTimedOutError) return 'statement_timeout'
  if (error instanceof errors.AuthenticationError) return codeOfRefusal(error)
  if (error instanceof errors.NoHostAvailableError) return 'client_unavailable'
  if (error instanceof errors.BusyConnectionError) return 'client_busy'
  if (isSocketError(error)) return 'connection_lost'
  if (error instanceof errors.DriverError) return 'database_error'
  return undefined
}

function codeOfAnswer(error: errors.ResponseError): DatabaseFailureCode {
  if (isUnsure(error) || areReplicasSick(error)) return 'client_unavailable'
  return isTooLarge(error) ? 'too_complex' : (RESPONSES.get(error.code) ?? 'database_error')
}

/** The library stores the server's error beside its own, which its types omit. */
function codeOfRefusal(error: errors.AuthenticationError): DatabaseFailureCode {
  const { additionalInfo } = error as { readonly additionalInfo?: unknown }
  return additionalInfo instanceof errors.ResponseError && isUnsure(additionalInfo)
    ? 'client_unavailable'
    : 'client_refused'
}

/**
 * The reason of a failure. A connection closed by liveness.ts has it inside. When every node has failed, the library reports only that; an
 * answer of one of them is the reason rather than the network. A statement that was prepared before a change of the structure also fails in
 * this way.
 */
function reasonOf(error: unknown): unknown {
  if (isSocketError(error) && error.innerError instanceof errors.OperationTimedOutError)
    return error.innerError
  if (!(error instanceof errors.NoHostAvailableError)) return error
  const reasons: readonly unknown[] = Object.values(error.innerErrors ?? {})
  return reasons.find(isAnswer) ?? error
}

const isAnswer = (error: unknown): boolean =>
  error instanceof errors.ResponseError ||
  error instanceof errors.AuthenticationError ||
  error instanceof errors.BusyConnectionError ||
  error instanceof errors.OperationTimedOutError

/** No node answers. */
export const isDown = (error: unknown): boolean => reasonOf(error) instanceof errors.NoHostAvailableError

/** Statements fail or too few nodes are available, perhaps only for this statement. */
export function isSick(error: unknown): boolean {
  const code = codeOf(reasonOf(error))
  return code === 'statement_timeout' || code === 'client_unavailable'
}

/** The connection was lost: all its statements fail at once, and the next ones go to other nodes. */
export const isBrokenOff = (error: unknown): boolean => isSocketError(error)

/** The library's marks. */
const isSocketError = (error: unknown): error is Error & { readonly innerError?: unknown } =>
  error instanceof Error && 'isSocketError' in error && error.isSocketError === true
