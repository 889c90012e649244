import type { Json } from './database.ts'

/** Values that a column may be compared with. Dates go as texts, and bigints too. */
type Value<V> = Exclude<V, null> | (string extends V ? Date : never) | (number extends V ? bigint : never)
type Column<R> = keyof R & string

type Operators<V> = {
  readonly eq?: Value<V> | null
  readonly neq?: Value<V> | null
  readonly gt?: Value<V>
  readonly gte?: Value<V>
  readonly lt?: Value<V>
  readonly lte?: Value<V>
  readonly in?: readonly (Value<V> | null)[]
  readonly is?: Truth
  readonly like?: string
  readonly ilike?: string
  readonly contains?: Contents<V>
  readonly containedBy?: Contents<V>
  readonly overlaps?: Contents<V>
  /** Text search. */
  readonly fts?: string
  readonly not?: Operand<V>
}

export type Truth = null | boolean | 'unknown'

/** Of an array or a JSON value; ranges are texts. */
type Contents<V> = Exclude<V, null> | (string extends V ? string : never)

/** A value, a list of values to be one of, or operators. Arrays and objects of JSON are compared by operators alone. */
type Operand<V> =
  | Operators<V>
  | null
  | ([Scalar<V>] extends [never] ? never : Scalar<V> | readonly (Scalar<V> | null)[])
type Scalar<V> = Extract<Value<V>, string | number | bigint | boolean | Date>

/** Conditions, joined by AND. */
export type Where<R> = {
  // Without types of a table, any column may be called so.
  readonly [C in Column<R>]?: Operand<R[C]> | (string extends C ? Where<R> | readonly Where<R>[] : never)
} & {
  readonly or?: readonly Where<R>[]
  readonly and?: readonly Where<R>[]
  readonly not?: Where<R> | readonly Where<R>[]
}

type OperatorName = Exclude<keyof Operators<Json>, 'not'>

/** The methods of a builder with conditions. `Next` is the builder that they return. */
export interface Conditions<R, Next> {
  /** `{ total: { gt: 5 }, state: ['new', 'paid'], note: null, or: [{ … }, { … }] }`. All of them must hold. */
  where(conditions: Where<R>): Next
  eq<C extends Column<R>>(column: C, value: Value<R[C]> | null): Next
  neq<C extends Column<R>>(column: C, value: Value<R[C]> | null): Next
  gt<C extends Column<R>>(column: C, value: Value<R[C]>): Next
  gte<C extends Column<R>>(column: C, value: Value<R[C]>): Next
  lt<C extends Column<R>>(column: C, value: Value<R[C]>): Next
  lte<C extends Column<R>>(column: C, value: Value<R[C]>): Next
  like(column: Column<R>, pattern: string): Next
  ilike(column: Column<R>, pattern: string): Next
  is(column: Column<R>, value: Truth): Next
  in<C extends Column<R>>(column: C, values: readonly (Value<R[C]> | null)[]): Next
  contains<C extends Column<R>>(column: C, value: Contents<R[C]>): Next
  containedBy<C extends Column<R>>(column: C, value: Contents<R[C]>): Next
  overlaps<C extends Column<R>>(column: C, value: Contents<R[C]>): Next
  textSearch(column: Column<R>, query: string): Next
  /** `.not('state', 'in', ['new'])`. */
  not<C extends Column<R>, O extends OperatorName>(column: C, operator: O, value: Operators<R[C]>[O]): Next
  /** Terms as text: `total.gt.5,note.is.null`. Never put values of users into it: they could add terms. `where({ or: […] })` takes them. */
  or(terms: string): Next
}
