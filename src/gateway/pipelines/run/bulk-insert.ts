import { setTimeout } from 'node:timers/promises'
import type { Row } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'
import { isAboutRows, isTransient } from './refused-rows.ts'
import type { RefusedRow } from './run-result.ts'

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
  readonly check: () => Promise<void>
  readonly maxErrors: number
  /** The most rows of a statement. */
  readonly maxRows: number
}

/** Rows of one statement. More are hardly faster. */
const STATEMENT = 5_000
/** Rows of the first statement, when nothing is known about the speed of the sink. */
const FIRST = 100
/** Milliseconds that a statement should take at most: a trigger of the sink can make each row slow, and statements have a time limit. */
const PACE = 1_000
/** Errors that are reported in full. */
const REPORTED = 10_000

/**
 * Inserts many rows by few statements. When a statement fails because of a row, the first such row is found by halving: each half that
 * succeeds is stored. Afterwards statements have about as many rows as there were between the last bad ones, and grow while they succeed,
 * so that n rows need at most about n statements when all are bad, and log n more for each one when few are.
 */
export function createBulkInsert({ write, check, maxErrors, maxRows }: Options): BulkInsert {
  let largest = Math.min(STATEMENT, maxRows)
  let size = largest
  /** The most rows of a statement at the speed of the last ones. */
  let paced = FIRST
  /** Average number of rows from one bad row to the next. */
  let gap = largest
  let sinceBad = 0
  let index = 0
  let inserted = 0
  let refused = 0
  const errors: RefusedRow[] = []

  /** Undefined when the rows are stored. */
  async function attempt(rows: readonly Row[]): Promise<Failure | undefined> {
    await check()
    const began = performance.now()
    try {
      inserted += await repeated(() => write(rows))
      sinceBad += rows.length
      pace(rows.length, performance.now() - began)
      return undefined
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (isAboutRows(error)) return error
      if (rows.length === 1 || error.code !== 'unsupported_by_driver') throw error
      // A backend that cannot write these rows together may write each of them.
      largest = 1
      size = 1
      return error
    }
  }

  function pace(rows: number, milliseconds: number): void {
    if (milliseconds > PACE) paced = Math.max(1, Math.floor((rows * PACE) / milliseconds))
    else if (rows >= paced && 2 * milliseconds <= PACE) paced = Math.min(largest, 2 * paced)
  }

  function refuse(at: number, failure: Failure): void {
    refused++
    if (errors.length < REPORTED) errors.push(refusedRow(at, failure))
    gap = (gap + sinceBad + 1) / 2
    sinceBad = 0
    size = Math.min(largest, Math.max(1, Math.round(gap / 2)))
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
        const own = await attempt(rows.slice(low, high))
        if (own === undefined) return high
        failure = own
      }
    }
    refuse(index + low, failure)
    return low + 1
  }

  async function insert(rows: readonly Row[]): Promise<boolean> {
    for (let start = 0; start < rows.length; ) {
      if (refused >= maxErrors) return false
      const some = rows.slice(start, start + Math.min(size, paced))
      const failure = await attempt(some)
      const decided = failure === undefined ? some.length : await findBad(some, failure)
      if (failure === undefined) size = Math.min(largest, size * 2)
      start += decided
      index += decided
    }
    return refused < maxErrors
  }

  return { inserted: () => inserted, refused: () => ({ count: refused, errors }), insert }
}

/** The message may quote a value of any length. */
const SHOWN = 500

function refusedRow(index: number, { message, hint, code }: Failure): RefusedRow {
  const error = hint === undefined ? message : `${message}: ${hint}`
  // A slice would keep the whole text in memory.
  return { index, error: Buffer.from(error.slice(0, SHOWN)).toString(), code }
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
