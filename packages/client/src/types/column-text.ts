import type { Json } from './database.ts'
import type { SelectError } from './select-error.ts'

/**
 * Columns as text: `id, total:amount::text, customer(name), lines!order_key(*)`. Gives a list of items, or a sentence about what is wrong.
 *
 *   item = "*" | [alias ":"] column ["::" type] | column "as" alias | [alias ":"] relation ["!" key] "(" items ")"
 */
export type Parsed<Q extends string> =
  List<Q, []> extends infer L
    ? L extends { items: infer I; end: 'text' }
      ? I
      : L extends string
        ? L
        : 'There is one ")" too many'
    : never

type Until<Head extends string, At, Tail extends string> = { head: Head; at: At; tail: Tail }

/** Cuts at the first comma or parenthesis. */
type Cut<Q extends string> = Q extends `${infer H},${infer T}`
  ? H extends `${infer A}(${infer B}`
    ? A extends `${infer C})${infer D}`
      ? Until<C, ')', `${D}(${B},${T}`>
      : Until<A, '(', `${B},${T}`>
    : H extends `${infer C})${infer D}`
      ? Until<C, ')', `${D},${T}`>
      : Until<H, ',', T>
  : Q extends `${infer A}(${infer B}`
    ? A extends `${infer C})${infer D}`
      ? Until<C, ')', `${D}(${B}`>
      : Until<A, '(', B>
    : Q extends `${infer C})${infer D}`
      ? Until<C, ')', D>
      : Until<Q, 'end', ''>

/** Reads items up to the parenthesis that closes them, or to the end of the text. */
type List<Q extends string, Items extends readonly unknown[]> =
  Cut<Q> extends Until<infer H, infer At, infer T>
    ? At extends '('
      ? AfterRelation<RelationItem<Trimmed<H>>, List<T, []>, Items>
      : ColumnItem<Trimmed<H>> extends infer Item
        ? Item extends string
          ? Item
          : At extends ','
            ? List<T, [...Items, Item]>
            : { items: [...Items, Item]; end: At extends ')' ? 'list' : 'text'; rest: T }
        : never
    : never

type AfterRelation<Head, Inner, Items extends readonly unknown[]> = Head extends string
  ? Head
  : Inner extends { items: infer I; end: 'list'; rest: infer Rest extends string }
    ? Trimmed<Rest> extends `${infer Sign}${infer T}`
      ? Sign extends ','
        ? List<T, [...Items, Head & { items: I }]>
        : Sign extends ')'
          ? { items: [...Items, Head & { items: I }]; end: 'list'; rest: T }
          : `"${Sign}" is not expected after ")"`
      : { items: [...Items, Head & { items: I }]; end: 'text'; rest: '' }
    : Inner extends string
      ? Inner
      : 'A ")" is missing'

type ColumnItem<T extends string> = T extends ''
  ? 'A column is missing'
  : T extends '*'
    ? { all: true }
    : T extends `...${string}`
      ? `"${T}": relations cannot be spread`
      : T extends `${infer Path}->${string}`
        ? `"${Path}->" is not supported: read the column and take the part in the program`
        : T extends `${infer C} as ${infer K}`
          ? Named<Trimmed<K>, Trimmed<C>>
          : T extends `${infer K}:${infer C}`
            ? C extends `:${string}`
              ? Named<undefined, T>
              : Named<Trimmed<K>, Trimmed<C>>
            : Named<undefined, T>

type Named<Key, C extends string> = C extends `${infer Name}::${infer Type}`
  ? {
      key: Key extends string ? Unquoted<Key> : Unquoted<Name>
      column: Unquoted<Trimmed<Name>>
      cast: Trimmed<Type>
    }
  : { key: Key extends string ? Unquoted<Key> : Unquoted<C>; column: Unquoted<C>; cast: undefined }

type RelationItem<T extends string> = T extends `...${string}`
  ? `"${T}(…)": relations cannot be spread`
  : T extends `${infer K}:${infer R}`
    ? Hinted<Unquoted<Trimmed<K>>, Trimmed<R>>
    : Hinted<undefined, T>

type Hinted<Key, R extends string> = R extends ''
  ? 'A relation is missing before "("'
  : R extends `${infer Name}!${infer Hint}`
    ? Hint extends 'inner' | 'left' | `${string}!${string}`
      ? `"${R}(…)": relations cannot filter the rows`
      : { key: Key extends string ? Key : Unquoted<Name>; relation: Unquoted<Name>; hint: Unquoted<Hint> }
    : { key: Key extends string ? Key : Unquoted<R>; relation: Unquoted<R>; hint: undefined }

type Space = ' ' | '\n' | '\t' | '\r'
type Trimmed<T extends string> = T extends `${Space}${infer R}`
  ? Trimmed<R>
  : T extends `${infer L}${Space}`
    ? Trimmed<L>
    : T

type Unquoted<T extends string> = T extends `"${infer Name}"` ? Name : T

/** The value of a column under a cast. `Numbers`: 'exact', or something else. */
export type CastValue<V, Type, Numbers> = Type extends string
  ? V extends SelectError<string>
    ? V
    : Cast<Lowercase<Type>, Numbers> | Extract<V, null>
  : V

type Cast<Type extends string, Numbers> = Type extends `${infer Item}[]`
  ? (Cast<Item, Numbers> | null)[]
  : Type extends 'json' | 'jsonb'
    ? Json
    : Type extends 'bool' | 'boolean'
      ? boolean
      : Type extends 'int8' | 'bigint'
        ? number | (Numbers extends 'exact' ? bigint : never)
        : Type extends 'numeric' | 'decimal'
          ? number | (Numbers extends 'exact' ? bigint | string : never)
          : Type extends SmallNumber
            ? number
            : string

type SmallNumber =
  | ('int2' | 'int4' | 'int' | 'integer' | 'smallint')
  | ('float4' | 'float8' | 'float' | 'real' | 'double precision')
