import type { CastValue, Parsed } from './column-text.ts'
import type { AnyRow, ForeignKeys, NumbersOf, RowOf, TableNames } from './database.ts'
import type { SelectError } from './select-error.ts'

/** Shows the members of a type instead of its name. */
type Prettify<T> = { [K in keyof T]: T[K] } & {}

/** Columns by object: `{ id: true, title: 'name', customer: { name: true } }`. */
export type Selection<DB, S, N> = {
  readonly [C in keyof RowOf<DB, S, N>]?: boolean | (keyof RowOf<DB, S, N> & string) | object
} & {
  readonly [T in RelationNames<DB, S, N>]?: boolean | (keyof RowOf<DB, S, N> & string) | object
} & { readonly [alias: string]: unknown }

/** Of tables whose key this table has. Others are found too, but not suggested: there may be hundreds. */
type RelationNames<DB, S, N> =
  ForeignKeys<DB, S, N> extends { referencedRelation: infer T extends string } ? T : never

/** The row that columns give, or the reason why they do not. */
export type Selected<DB, S, N, Q> = Q extends string
  ? SelectedByText<DB, S, N, Q>
  : SelectedByObject<DB, S, N, Q>

type SelectedByText<DB, S, N, Q extends string> = string extends Q
  ? Loose<RowOf<DB, S, N>>
  : Parsed<Q> extends infer Items
    ? Items extends readonly unknown[]
      ? SelectedItems<DB, S, N, Items[number]>
      : Items extends string
        ? SelectError<Items>
        : never
    : never

/** Of columns that are not known before the program runs. */
type Loose<R> = { [C in keyof R]?: R[C] }

// Items of a text (column-text.ts).
type SelectedItems<DB, S, N, I> = Whole<
  ([Extract<I, { all: true }>] extends [never] ? unknown : RowOf<DB, S, N>) & {
    [Item in Exclude<I, { all: true }> as Item extends { key: infer K extends string }
      ? K
      : never]: ItemValue<DB, S, N, Item>
  }
>

type ItemValue<DB, S, N, Item> = Item extends {
  relation: infer T extends string
  hint: infer H
  items: infer Inner extends readonly unknown[]
}
  ? Related<Relation<DB, S, N, T, H>, DB, S, { items: Inner }>
  : Item extends { column: infer C extends string; cast: infer Type }
    ? CastValue<Column<DB, S, N, C>, Type, NumbersOf<DB, S>>
    : never

// Members of an object.
type SelectedByObject<DB, S, N, Q> = Whole<
  (Q extends { readonly '*': true } ? RowOf<DB, S, N> : unknown) & {
    -readonly [K in keyof Q as Q[K] extends false | undefined
      ? never
      : K extends '*'
        ? never
        : K]: MemberValue<DB, S, N, K & string, Q[K]>
  }
>

type MemberValue<DB, S, N, K extends string, V> = V extends boolean | undefined
  ? V extends true
    ? Column<DB, S, N, K>
    : undefined
  : V extends string
    ? Column<DB, S, N, V>
    : V extends { readonly select: infer Inner extends object }
      ? Related<Relation<DB, S, N, From<V, K>, Hint<V>>, DB, S, { object: Inner }>
      : Related<Relation<DB, S, N, K, undefined>, DB, S, { object: V }>

type From<V, K extends string> = V extends { readonly from: infer F extends string } ? F : K
type Hint<V> = V extends { readonly hint: infer H extends string } ? H : undefined

type Column<DB, S, N, C extends string> = C extends keyof RowOf<DB, S, N>
  ? RowOf<DB, S, N>[C]
  : SelectError<`${N & string} has no column "${C}"`>

/** A member that is an error makes an error of the whole. */
type Whole<R> = [keyof R] extends [never]
  ? SelectError<'No columns are selected'>
  : [Extract<R[keyof R], SelectError<string>>] extends [never]
    ? Prettify<R>
    : Extract<R[keyof R], SelectError<string>>

/** The value of a relation, by its table. */
type Related<Found, DB, S, Q> = Found extends { table: infer T extends string; value: infer Kind }
  ? OfKind<
      Q extends { items: infer I extends readonly unknown[] }
        ? SelectedItems<DB, S, T, I[number]>
        : Q extends { object: infer O }
          ? SelectedByObject<DB, S, T, O>
          : never,
      Kind
    >
  : Found

type OfKind<R, Kind> =
  R extends SelectError<string> ? R : Kind extends 'many' ? R[] : Kind extends 'one' ? R : R | null

/**
 * Finds a relation as the service does: by the table on the other side, by the column of the foreign key, or by its name. A table whose rows
 * refer to this one gives a list. A row that policies may hide may be null.
 */
type Relation<DB, S, N, T extends string, Hint> =
  AnyRow extends RowOf<DB, S, N>
    ? { table: T; value: 'maybe' }
    : Chosen<
        N,
        T,
        Outward<ForeignKeys<DB, S, N>, DB, S, N, T, Hint> | Inward<ForeignKeys<DB, S, T>, N, T, Hint>
      >

type Chosen<N, T extends string, Found> = [Found] extends [never]
  ? SelectError<`${N & string} has no relation "${T}"`>
  : IsUnion<Found extends { by: infer Name } ? Name : never> extends true
    ? SelectError<`${N & string} has several relations to "${T}": write "${T}!key(…)", or the column of the key`>
    : Found

type Outward<Key, DB, S, N, T, Hint> = Key extends {
  foreignKeyName: infer Name extends string
  columns: infer Columns extends readonly string[]
  referencedRelation: infer Target extends TableNames<DB, S>
}
  ? Fits<T, Hint, Target, Name | OnlyColumn<Columns>> extends true
    ? {
        table: Target
        value: Key extends { mayBeMissing: true }
          ? 'maybe'
          : null extends RowOf<DB, S, N>[Columns[number] & keyof RowOf<DB, S, N>]
            ? 'maybe'
            : 'one'
        by: Name
      }
    : never
  : never

type Inward<Key, N, T, Hint> = Key extends {
  foreignKeyName: infer Name extends string
  columns: infer Columns extends readonly string[]
  referencedRelation: N
}
  ? Fits<T, Hint, T, Name | OnlyColumn<Columns>> extends true
    ? { table: T; value: 'many'; by: `${Name} of ${T & string}` }
    : never
  : never

type Fits<T, Hint, Target, Names> = Hint extends string
  ? T extends Target
    ? Hint extends Names
      ? true
      : false
    : false
  : T extends Target | Names
    ? true
    : false

/** A key of one column is named by it. */
type OnlyColumn<Columns> = Columns extends readonly [infer C] ? C : never

type IsUnion<T, One = T> = [T] extends [never]
  ? false
  : T extends unknown
    ? [One] extends [T]
      ? false
      : true
    : never
