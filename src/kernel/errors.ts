/**
 * An expected failure: a code from one of the tables and a message for the caller, without internals.
 * Any other error is a bug, and is answered by a 500 without details.
 */
export class Failure extends Error {
  readonly code: string
  readonly status: number
  /** Advice, or the database's own message; the gateway's `error`. */
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

export type FailureFacts = {
  /** Replaces the table's message by a more specific one. */
  readonly message?: string
  readonly hint?: string
  readonly details?: Record<string, unknown>
  readonly headers?: Record<string, string>
  readonly cause?: unknown
}

/**
 * code → [status, message]; one table per half, and the only place that assigns a status. A third member is the
 * code that callers see, where the contract gives one code two statuses.
 */
export type FailureTable = Readonly<
  Record<string, readonly [status: number, message: string, shown?: string]>
>

/** `const fail = defineFailures(table)`, then `throw fail('CODE')`: an unknown code is a type error. */
export function defineFailures<T extends FailureTable>(table: T) {
  return (code: keyof T & string, more: FailureFacts = {}): Failure => {
    // An own key of T by the parameter's type, so the lookup cannot miss.
    const [status, message, shown] = table[code] as readonly [number, string, string?]
    return new Failure(shown ?? code, status, more.message ?? message, more)
  }
}
