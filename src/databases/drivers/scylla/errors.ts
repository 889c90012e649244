import { errors, types } from 'cassandra-driver'
import { type DatabaseFailureCode, fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

/**
 * The one table from an error of the server to a failure. Codes of the native protocol, version 4, section 9, and two of version 5.
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
  [0x1700, 'statement_timeout'], // outcome of a conditional write not known
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

/** Where the server's own sentence helps the caller and says nothing that they did not write or may not see. */
const QUOTED_CODES: ReadonlySet<DatabaseFailureCode> = new Set([
  'rejected_by_database',
  'invalid_definition',
  'object_exists',
])

/** The answer of a write is the only sign that it was done. */
const DOUBTFUL: ReadonlySet<DatabaseFailureCode> = new Set([
  'statement_timeout',
  'connection_lost',
  'database_error',
])

/** An error of the server, the network or the library as a Failure without text of the statement, host or credentials. */
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

/** A conditional write is decided at a serial level, and too few nodes may be found after that; and replicas that failed may have it. */
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
 * The server keeps roles and rights in its own tables. When too few nodes answer for these, it calls that a refusal, of the
 * credentials or of the statement; its sentence tells the reason.
 */
const isUnsure = ({ code, message }: errors.ResponseError): boolean =>
  (code === BAD_CREDENTIALS || code === UNAUTHORIZED) &&
  /unable to perform auth|cannot achieve consistency|timed out|could not verify/i.test(message)

/** Replicas that failed, not over what was asked of them. Cassandra names the reasons; ScyllaDB has none of these. */
const areReplicasSick = ({ code, message }: errors.ResponseError): boolean =>
  (code === 0x1300 || code === 0x1500) && /TIMEOUT|NODE_DOWN|INDEX_NOT_AVAILABLE|INDEX_BUILD/.test(message)

/** The server has a limit for what is written at once, and no code for it. */
const isTooLarge = ({ code, message }: errors.ResponseError): boolean =>
  code === INVALID && /too large|exceeds? (?:the )?(?:max|limit)/i.test(message)

/** A name of the statement is not there any more. */
export const hasMoved = (failure: Failure): boolean =>
  isUnprepared(failure) ||
  (isInvalid(failure) && /undefined|unconfigured|unknown|does ?n[o']t exist/i.test(messageOf(failure.cause)))

/** It was prepared once, and cannot be again, since tables or columns are gone: the library keeps the server's reason to itself. */
export const isUnprepared = (failure: Failure): boolean =>
  failure.cause instanceof errors.ResponseError && failure.cause.code === UNPREPARED

/** The server understood a statement of ours and will not run it. */
export const isInvalid = (failure: Failure): boolean =>
  failure.cause instanceof errors.ResponseError && failure.cause.code === INVALID

/** Of a connection, before there is a statement: who may not use the keyspace, or there is none, or nobody answers. */
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

/** Undefined: neither the server's nor the network's, so a bug. */
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

/** The library keeps the server's answer beside its own error, which its types leave out. */
function codeOfRefusal(error: errors.AuthenticationError): DatabaseFailureCode {
  const { additionalInfo } = error as { readonly additionalInfo?: unknown }
  return additionalInfo instanceof errors.ResponseError && isUnsure(additionalInfo)
    ? 'client_unavailable'
    : 'client_refused'
}

/**
 * A connection that liveness.ts has ended tells why inside. When every node has failed the library says so, and no more. What one of them answered is the reason, the network is not; a
 * statement that was prepared before the structure changed fails in this way as well.
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

/** No node answers at all. */
export const isDown = (error: unknown): boolean => reasonOf(error) instanceof errors.NoHostAvailableError

/** Statements are not done, or too few nodes are there, which may be only for this one. */
export function isSick(error: unknown): boolean {
  const code = codeOf(reasonOf(error))
  return code === 'statement_timeout' || code === 'client_unavailable'
}

/** Another matter: all statements of the connection fail at once, and the next ones take other nodes. */
export const isBrokenOff = (error: unknown): boolean => isSocketError(error)

/** As the library marks them. */
const isSocketError = (error: unknown): error is Error & { readonly innerError?: unknown } =>
  error instanceof Error && 'isSocketError' in error && error.isSocketError === true
