import type { LiveListener } from '../live/open-live.ts'
import type { CountMode, ReadBody } from '../rows/body.ts'
import type { OrderOptions } from '../rows/order.ts'
import type { Result } from '../rows/result.ts'
import type { SOURCE, Source } from '../rows/source.ts'
import type { STEP, Step } from '../rows/step.ts'
import type { Conditions } from './conditions.ts'
import type { RowOf } from './database.ts'
import type { Selected, Selection } from './selection.ts'

/** Sent when it is awaited. */
export interface Query<Data> extends PromiseLike<Result<Data>> {
  /** The data alone; throws a GatehouseError. */
  orThrow(): Promise<Data>
}

/** A step of a transaction, unless `Part` says otherwise. */
export interface Stepping<Part = Step> {
  readonly [STEP]: Part
}

declare const reason: unique symbol
/** A signal, a timeout and a key are those of the whole transaction. */
interface NoStep {
  readonly [reason]: 'A step has no signal, timeout or key of its own: the transaction has them'
}

/** A read, which can be sent again by itself. */
interface Repeatable {
  readonly [SOURCE]: Source
}

interface Bounded<Next> {
  /** Ends the request when the signal is aborted. */
  signal(signal: AbortSignal): Next
  /** Milliseconds for the request and its repetitions together. */
  timeout(milliseconds: number): Next
}

type Direction = 'asc' | 'desc'
type OrderBy<R> = {
  readonly [C in keyof R]?: Direction | { readonly direction?: Direction; readonly nulls?: 'first' | 'last' }
}

interface Ordered<R, Next> {
  /** `{ at: 'desc', id: 'asc' }`: the first column decides first. */
  order(by: OrderBy<R>): Next
  order(column: keyof R & string, options?: OrderOptions): Next
  limit(rows: number): Next
  /** From the first to the last row, counted from 0, both included. */
  range(from: number, to: number): Next
  /** Pages are counted from 1. Rows that come and go between two pages move the others: `.all()` does not lose any. */
  page(page: number, size: number): Next
  /** Counts the rows that match as well, however few are read. */
  count(mode?: CountMode): Next
}

/** Rows of a table: those that `select` has named, under conditions. Each method leaves it as it is, and returns another one. */
export interface Read<DB, S, N, R, Data = R[], Part = Step>
  extends Query<Data>,
    Stepping<Part>,
    Repeatable,
    Conditions<RowOf<DB, S, N>, Read<DB, S, N, R, Data, Part>>,
    Ordered<RowOf<DB, S, N>, Read<DB, S, N, R, Data, Part>>,
    Bounded<Read<DB, S, N, R, Data, NoStep>> {
  /** The body of the fetch. */
  readonly request: ReadBody
  /** The row; `not_one_row` if there is none, or more than one. */
  single(): Read<DB, S, N, R, R, Part>
  /** The row or null; `not_one_row` if there is more than one. */
  maybeSingle(): Read<DB, S, N, R, R | null, Part>
  /** All rows, in batches. Needs an order whose last column is unique. Throws a GatehouseError. */
  all(options?: { readonly batch?: number }): AsyncIterable<R>
  /** Follows the rows: those of now, and then every change. Returns a function that ends it. */
  live(on: LiveListener<R>): () => void
}

/** A number of rows. */
export interface Count<R> extends Query<number>, Repeatable, Conditions<R, Count<R>>, Bounded<Count<R>> {}

interface Idempotent<Next> {
  /**
   * The service runs the write once under this key within 24 hours, so the client may send it again. Each write has a key of its own:
   * `crypto.randomUUID()`.
   */
  idempotent(key: string): Next
}

/** A write that returns no rows. `count` is the number of rows that it has changed. */
export interface Write<DB, S, N, Part = Step>
  extends Query<null>,
    Stepping<Part>,
    Bounded<Write<DB, S, N, NoStep>>,
    Idempotent<Write<DB, S, N, NoStep>> {
  /** Returns the rows as they are after the write; deleted ones as they were. */
  select<const Q extends string | Selection<DB, S, N> = '*'>(
    columns?: Q,
  ): Written<Selected<DB, S, N, Q>, Selected<DB, S, N, Q>[], Part>
}

/** A write that returns rows. */
export interface Written<R, Data = R[], Part = Step>
  extends Query<Data>,
    Stepping<Part>,
    Bounded<Written<R, Data, NoStep>>,
    Idempotent<Written<R, Data, NoStep>> {
  /** The row; `not_one_row` if there is none. If several match, nothing is written, which is `not_one_row` as well. */
  single(): Written<R, R, Part>
  /** The row or null. If several match, nothing is written, and it is `not_one_row`. */
  maybeSingle(): Written<R, R | null, Part>
}

/** An update or delete with conditions. */
export interface Change<DB, S, N> extends Write<DB, S, N>, Conditions<RowOf<DB, S, N>, Change<DB, S, N>> {}

/** An update or delete, which is not sent before it has conditions. */
export interface Unbounded<DB, S, N> extends Conditions<RowOf<DB, S, N>, Change<DB, S, N>> {
  /** Means every row of the table. */
  unbounded(): Change<DB, S, N>
}

/** The rows of a function, as a database of one table. */
export type Rows<F extends string, R, Numbers> = {
  rows: { Tables: { [name in F]: { Row: R; Relationships: [] } }; Numbers: Numbers }
}

/** The rows of a function. `Picked` is what `select` has chosen of them. */
export interface Call<DB, F, R, Value, Picked = R, Data = Picked[]>
  extends Query<Data>,
    Conditions<R, Call<DB, F, R, Value, Picked, Data>>,
    Ordered<R, Call<DB, F, R, Value, Picked, Data>>,
    Bounded<Call<DB, F, R, Value, Picked, Data>> {
  select<const Q extends string | Selection<DB, 'rows', F> = '*'>(
    columns?: Q,
  ): Call<DB, F, R, Value, Selected<DB, 'rows', F, Q>>
  single(): Call<DB, F, R, Value, Picked, Picked>
  maybeSingle(): Call<DB, F, R, Value, Picked, Picked | null>
  /** The value of a function that returns one. */
  value(): Call<DB, F, R, Value, Picked, Value>
}

/** All or none of its steps. Its data are those of the steps. */
export interface Transaction<Data>
  extends Query<Data>,
    Bounded<Transaction<Data>>,
    Idempotent<Transaction<Data>> {}

export interface Sql<R> extends Query<R[]>, Bounded<Sql<R>> {}
