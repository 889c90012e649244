import { failure, GatehouseError } from '../failure.ts'
import type { Reply } from '../request.ts'

/** Either data or an error. */
export type Result<T> = Success<T> | Failure

export type Success<T> = {
  readonly data: T
  readonly error: null
  /** Rows that match, if the read has asked for it by `.count()`; of a write, the rows that it has changed. */
  readonly count: number | null
  /** Whether the service has cut the rows: a read without a limit has 1,000 of them at most. */
  readonly hasMore: boolean
}

export type Failure = {
  readonly data: null
  readonly error: GatehouseError
  readonly count: null
  readonly hasMore: false
}

/** A request that is sent when it is awaited. */
type Awaitable<T> = PromiseLike<Result<T>> & {
  /** The data alone; throws a GatehouseError. */
  orThrow(): Promise<T>
}

export type Found = Omit<Success<unknown>, 'error'>

/** `none`: a write that returns no rows. `value`: the only value of the only row, of a function. `count`: the number alone. */
export type Mode = 'none' | 'many' | 'one' | 'maybe' | 'value' | 'count'

/** Makes a request awaitable. */
export const awaitable = (run: () => Promise<Found>): Awaitable<unknown> => ({
  // biome-ignore lint/suspicious/noThenProperty: a builder is sent when it is awaited
  then: (resolve, reject) => settled(run).then(resolve, reject),
  orThrow: async () => (await run()).data,
})

/** For what may write: is sent once, however often it is awaited. */
export function once(run: () => Promise<Found>): () => Promise<Found> {
  let sent: Promise<Found> | undefined
  return () => {
    sent ??= run()
    return sent
  }
}

async function settled(run: () => Promise<Found>): Promise<Result<unknown>> {
  try {
    return { ...(await run()), error: null }
  } catch (error) {
    // Anything else is a mistake in the program, or an error of its session function.
    if (!(error instanceof GatehouseError)) throw error
    return { data: null, error, count: null, hasMore: false }
  }
}

/** The rows of an answer, in the form that was asked for. */
export function found(reply: Reply, mode: Mode): Found {
  const { count = reply.affected_rows ?? null, data_omitted, rows: omitted = 0 } = reply
  if (data_omitted && omitted > 0)
    throw failure({
      code: 'rows_not_stored',
      status: 200,
      message: 'The write was done before, but its rows were not stored',
      details: { rows: omitted },
    })
  const { data = [], has_more, data_truncated } = reply
  if (mode === 'many') return { data, count, hasMore: has_more === true || data_truncated === true }
  const one = mode === 'none' ? null : mode === 'count' ? count : onlyRow(data as readonly object[], mode) // of rows
  return { data: one, count, hasMore: false }
}

function onlyRow(rows: readonly object[], mode: Mode): unknown {
  const [row] = rows
  if (row === undefined && mode !== 'one') return null
  if (row === undefined || rows.length > 1)
    throw failure({
      code: 'not_one_row',
      status: 200,
      message: `There is ${row === undefined ? 'no' : 'more than one'} such row`,
      details: { rows: rows.length },
    })
  return mode === 'value' ? Object.values(row)[0] : row
}
