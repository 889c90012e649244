/**
 * An expected failure: a code from one of the tables and a message for the caller, without internals.
 * Any other error is a bug, and is answered by a 500 without details.
 */
export class Failure extends Error {
  readonly code: string
  readonly status: number
  /** Advice, or the database's own message. The gateway sends it as `error`. */
  readonly hint: string | undefined
  /** Facts for programs, safe to show. */
  readonly details: Record<string, unknown> | undefined
  readonly headers: Record<string, string> | undefined

  constructor(code: string, status: number, message: string, more: FailureFacts = {}) {
    super(message, { cause: more.cause })
    this.name = 'Failure'
    this.code = code
    this.status = status
    this.hint = more.hint
    this.details = more.details
    this.headers = more.headers
  }
}

/** The same failure with further facts. */
export function withDetails(failure: Failure, details: Record<string, unknown>): Failure {
  const { code, status, message, hint, headers, cause } = failure
  return new Failure(code, status, message, {
    ...(hint !== undefined && { hint }),
    ...(headers !== undefined && { headers }),
    details: { ...failure.details, ...details },
    cause,
  })
}

export type FailureFacts = {
  /** Replaces the table's message by a more specific one. */
  readonly message?: string
  readonly hint?: string
  readonly details?: Record<string, unknown>
  readonly headers?: Record<string, string>
  readonly cause?: unknown
}

/**
 * code → [status, message]. Only these tables assign a status. A third member is the code that callers see: the contract gives some
 * codes two statuses, and each status has an entry of its own.
 */
export type FailureTable = Readonly<
  Record<string, readonly [status: number, message: string, publicCode?: string]>
>

/** `const fail = defineFailures(table)`, then `throw fail('CODE')`: an unknown code is a type error. `hints`: advice where none is given. */
export function defineFailures<T extends FailureTable>(
  table: T,
  hints: Partial<Record<keyof T & string, string>> = {},
) {
  return (code: keyof T & string, more: FailureFacts = {}): Failure => {
    // The type of `code` admits only keys of T, so the lookup always finds an entry.
    const [status, message, publicCode] = table[code] as readonly [number, string, string?]
    const hint = more.hint ?? hints[code]
    return new Failure(publicCode ?? code, status, more.message ?? message, {
      ...more,
      ...(hint !== undefined && { hint }),
    })
  }
}
