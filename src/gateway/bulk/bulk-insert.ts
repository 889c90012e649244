import { setTimeout } from 'node:timers/promises'
import { VALUE_FAILURES } from '#databases/failures.ts'
import type { Row } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'
import { createStatementSize } from './statement-size.ts'

/** A row that the sink has refused. `index` counts the rows of all calls from 0. */
type RefusedRow = {
  readonly index: number
  readonly error: string
  readonly code: string
  /** The column whose value is refused, where the sink tells it. */
  readonly column?: string
}

export type BulkInsert = {
  /** Rows that are committed. */
  inserted(): number
  /** Rows that the sink has refused, the first ones in full. */
  refused(): { readonly count: number; readonly errors: readonly RefusedRow[] }
  /** Inserts rows, each of which is either stored or refused in the end. False when there were too many refused rows to go on. */
  insert(rows: readonly Row[]): Promise<boolean>
}

type Options = {
  /** One statement, all rows or none; returns how many were inserted. Throws a failure of the database. */
  readonly write: (rows: readonly Row[]) => Promise<number>
  /** Called before every statement; throws to end the run. */
  readonly check: () => void
  readonly maxErrors: number
  /** Whether a failure is about a row, so that the other rows may be stored. Default: failures that the sink has with its values. */
  readonly isRefusal?: (failure: Failure) => boolean
  /** The most rows of a statement. */
  readonly maxRows: number
}

/** Errors that are reported in full. */
const REPORTED = 10_000

/**
 * Inserts many rows by few statements. When a statement fails because of a row, the first such row is found by halving: each half that
 * succeeds is stored. Afterwards statements have about as many rows as there were between the last bad ones, and grow while they succeed,
 * so that n rows need at most about n statements when all are bad, and log n more for each one when few are.
 */
export function createBulkInsert({
  write,
  check,
  maxErrors,
  maxRows,
  isRefusal = isAboutRows,
}: Options): BulkInsert {
  const size = createStatementSize(maxRows)
  let index = 0
  let inserted = 0
  let refused = 0
  const errors: RefusedRow[] = []

  /** Undefined when the rows are stored. */
  async function attempt(rows: readonly Row[]): Promise<Failure | undefined> {
    check()
    const began = performance.now()
    try {
      inserted += await repeated(() => write(rows))
      size.stored(rows.length, performance.now() - began)
      return undefined
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (isRefusal(error)) return error
      if (rows.length === 1 || error.code !== 'unsupported_by_driver') throw error
      // A backend that cannot write these rows together may write each of them.
      size.toOneRow()
      return error
    }
  }

  function refuse(at: number, failure: Failure): void {
    refused++
    if (errors.length < REPORTED) errors.push(refusedRow(at, failure))
    size.refused()
  }

  /** Rows whose statement has failed: stores those before the first bad one. Returns how many rows are decided. */
  async function findBad(rows: readonly Row[], first: Failure): Promise<number> {
    let [low, high, failure] = [0, rows.length, first]
    while (high - low > 1) {
      const middle = low + ((high - low) >> 1)
      const found = await attempt(rows.slice(low, middle))
      if (found === undefined) low = middle
      else {
        high = middle
        failure = found
      }
      // Only a statement with this row alone shows that it is bad.
      if (high - low === 1 && found === undefined) {
        const alone = await attempt(rows.slice(low, high))
        if (alone === undefined) return high
        failure = alone
      }
    }
    refuse(index + low, failure)
    return low + 1
  }

  async function insert(rows: readonly Row[]): Promise<boolean> {
    for (let start = 0; start < rows.length; ) {
      if (refused >= maxErrors) return false
      const some = rows.slice(start, start + size.next())
      const failure = await attempt(some)
      const decided = failure === undefined ? some.length : await findBad(some, failure)
      if (failure === undefined) size.grow()
      start += decided
      index += decided
    }
    return refused < maxErrors
  }

  return { inserted: () => inserted, refused: () => ({ count: refused, errors }), insert }
}

/** The message may quote a value of any length. */
const SHOWN = 500

function refusedRow(index: number, { message, hint, code, details }: Failure): RefusedRow {
  const error = hint === undefined ? message : `${message}: ${hint}`
  // A slice would keep the whole text in memory.
  const column = typeof details?.column === 'string' && { column: details.column }
  return { index, error: Buffer.from(error.slice(0, SHOWN)).toString(), code, ...column }
}

const ATTEMPTS = 5
const PAUSE = 50

/** Repeats a statement that had no effect because of others: a deadlock, or no free connection. */
async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === ATTEMPTS || !isTransient(error)) throw error
      await setTimeout(PAUSE * 2 ** attempt)
    }
  }
}

/** Whether a statement failed because of a row: without that row it may succeed. */
export const isAboutRows = (failure: Failure): boolean =>
  VALUE_FAILURES.has(failure.code) ||
  failure.code === 'too_complex' ||
  isPolicyViolation(failure) ||
  isRaised(failure)

/** A policy refuses a row with the same code as a missing privilege. The function of the server that reports it is the difference. */
const isPolicyViolation = ({ code, hint, cause }: Failure): boolean =>
  code === 'permission_denied' &&
  (routineOf(cause) === 'ExecWithCheckOptions' || hint?.includes('row-level security policy') === true)

/** Whether it is unknown if the rows are stored: the answer to their statement is lost. */
export const isInDoubt = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'connection_lost'

/** By RAISE in a function or trigger, which would do it again. */
const isRaised = ({ cause }: Failure): boolean => routineOf(cause) === 'exec_stmt_raise'

const routineOf = (cause: unknown): unknown =>
  typeof cause === 'object' && cause !== null && 'routine' in cause ? cause.routine : undefined

/** The statement had no effect, and can succeed later. */
const isTransient = (error: unknown): boolean =>
  error instanceof Failure &&
  (error.code === 'write_conflict' || error.code === 'client_busy') &&
  !isRaised(error)
