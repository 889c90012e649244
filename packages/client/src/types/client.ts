import type { CountMode } from '../rows/body.ts'
import type { SelectOptions } from '../rows/table.ts'
import type { TransactionOptions } from '../rows/transaction.ts'
import type {
  FunctionNames,
  FunctionOf,
  InsertOf,
  Json,
  NumbersOf,
  RowOf,
  SchemaNames,
  TableNames,
  UpdateOf,
} from './database.ts'
import type { Call, Count, Query, Read, Rows, Sql, Stepping, Transaction, Unbounded, Write } from './query.ts'
import type { Selected, Selection } from './selection.ts'

/** One schema of a database, which is `public` unless `schema` names another one. */
export interface Client<DB, S> {
  from<N extends TableNames<DB, S>>(table: N): Table<DB, S, N>
  schema<T extends SchemaNames<DB>>(name: T): Client<DB, T>
  /** Calls a function. A call is never repeated by itself. */
  rpc<F extends FunctionNames<DB, S>>(
    name: F,
    ...args: Arguments<FunctionOf<DB, S, F>>
  ): Called<F, FunctionOf<DB, S, F>, NumbersOf<DB, S>>
  /** Runs reads and writes in their order, all or none of them. Nothing is sent before it is awaited. */
  transaction<const Steps extends readonly (Stepping & Query<unknown>)[]>(
    steps: Steps,
    options?: TransactionOptions,
  ): Transaction<{ -readonly [I in keyof Steps]: Steps[I] extends Query<infer Data> ? Data : never }>
  /** Runs SQL under a key with that right: `$1` is the first of the values. It is never repeated by itself. */
  sql<R = { [column: string]: Json }>(text: string, values?: readonly unknown[]): Sql<R>
}

/** Reads and writes of the rows of a table or view. */
export interface Table<DB, S, N> {
  /** By object, `{ id: true, customer: { name: true } }`, or as text, `'id, customer(name)'`. Without columns: all of them. */
  select<const Q extends string | Selection<DB, S, N> = '*'>(
    columns?: Q,
    options?: SelectOptions,
  ): Read<DB, S, N, Selected<DB, S, N, Q>>
  insert(rows: InsertOf<DB, S, N> | readonly InsertOf<DB, S, N>[]): Write<DB, S, N>
  /** Rows that exist get the values of the given ones. At most 100 rows (`limits.operations`), unless duplicates are ignored. */
  upsert(
    rows: InsertOf<DB, S, N> | readonly InsertOf<DB, S, N>[],
    options: Upserting<keyof RowOf<DB, S, N> & string>,
  ): Write<DB, S, N>
  /** Needs conditions. */
  update(values: UpdateOf<DB, S, N>): Unbounded<DB, S, N>
  /** Needs conditions. */
  delete(): Unbounded<DB, S, N>
  /** Counts rows without reading them. */
  count(mode?: CountMode): Count<RowOf<DB, S, N>>
}

type Upserting<C extends string> = {
  /** The columns of a unique constraint; as text, they are separated by commas. */
  readonly onConflict: C | readonly C[] | `${C},${string}`
  /** Leaves rows that exist as they are. */
  readonly ignoreDuplicates?: boolean
}

type Arguments<F> = F extends { Args: infer A }
  ? [A] extends [never] | [{ [name: string]: never }]
    ? []
    : Partial<A> extends A
      ? [args?: A]
      : [args: A]
  : []
type Returns<Function> = Function extends { Returns: infer R } ? R : never
/** A value is in a row whose only column has the name of the argument that it goes out by, or that of the function. */
type ValueColumn<Function, F extends string> = Function extends { Column: infer C extends string } ? C : F

type Called<F extends string, Function, Numbers> = [Function] extends [{ IsSet: false }]
  ? CalledOnce<F, Returns<Function>, ValueColumn<Function, F>, Numbers>
  : [Returns<Function>] extends [readonly (infer Row)[]]
    ? CallOf<F, RowIn<ValueColumn<Function, F>, Row>, never, Numbers>
    : CalledOnce<F, Returns<Function>, ValueColumn<Function, F>, Numbers>
type CalledOnce<F extends string, R, Column extends string, Numbers> = CallOf<
  F,
  RowIn<Column, R>,
  ValueOf<R>,
  Numbers
>
type CallOf<F extends string, R, Value, Numbers> = Call<Rows<F, R, Numbers>, F, R, Value>

type AnyRow = { [column: string]: unknown }
type RowIn<Column extends string, R> = [R] extends [AnyRow] ? R : { [name in Column]: R }
/** A row is no value. */
type ValueOf<R> = [R] extends [undefined] ? null : [R] extends [AnyRow] ? never : R
