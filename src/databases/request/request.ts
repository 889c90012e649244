/**
 * A request is what a body asks for, checked by itself: no name in it has been looked up yet. The plan of it, with every name found in the
 * catalogue, is in plan/plan.ts.
 */
export type TableName = { readonly schema: string; readonly table: string }

/** A value of a request. Numbers that a double cannot hold arrive as raw JSON (json.ts). */
export type Json =
  | string
  | number
  | boolean
  | null
  | RawJson
  | readonly Json[]
  | { readonly [key: string]: Json }
export type RawJson = { readonly rawJSON: string }

export type Operator = (typeof OPERATORS)[number]
export const OPERATORS = [
  'eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'like', 'ilike', 'is', 'in', 'contains', 'containedBy', 'overlaps', 'fts',
] as const // biome-ignore format: one line reads better

/** A condition over columns: names in a request, columns of the catalogue in a plan. */
export type Condition<C> =
  | { readonly kind: 'all' | 'any'; readonly terms: readonly Condition<C>[] }
  | { readonly kind: 'not'; readonly term: Condition<C> }
  | Comparison<C>

export type Comparison<C> = {
  readonly kind: 'compare'
  readonly column: C
  readonly operator: Operator
  readonly value: Json
  readonly columnCast?: string
  readonly valueCast?: string
}

export type Sort<C> = { readonly column: C; readonly descending: boolean; readonly nulls?: 'first' | 'last' }
export type CountMode = 'exact' | 'planned' | 'estimated'

/** What a request asks back: a column, all of them, or a relation with columns of its own. */
export type ColumnTerm =
  | { readonly kind: 'all' }
  | { readonly kind: 'column'; readonly name: string; readonly alias?: string; readonly cast?: string }
  | RelationTerm

export type RelationTerm = {
  readonly kind: 'relation'
  /** A table, a foreign-key column or a constraint. */
  readonly name: string
  readonly schema?: string
  /** `table!constraint`: which of several foreign keys. */
  readonly hint?: string
  readonly alias?: string
  readonly columns: readonly ColumnTerm[]
}

export type Page = {
  readonly limit: number
  readonly offset: number
  /** No limit was given: one row more is asked for, so that `has_more` can be told. */
  readonly open: boolean
}

type Target = { readonly table: TableName }
type Asked = { readonly columns: readonly ColumnTerm[]; readonly head: boolean; readonly stripNulls: boolean }
/** `namesColumns`: the body says which columns of the written rows it wants; else they are given to whom may read them. */
type Written = Asked & { readonly namesColumns: boolean }
type Bounded = {
  readonly where: Condition<string> | undefined
  readonly sort: readonly Sort<string>[]
  readonly limit: number | undefined
  readonly offset: number
}

export type ReadRequest = Target &
  Asked & {
    readonly kind: 'read'
    readonly where: Condition<string> | undefined
    readonly sort: readonly Sort<string>[]
    readonly page: Page
    readonly count: CountMode | undefined
  }

export type CountRequest = Target & {
  readonly kind: 'count'
  readonly where: Condition<string> | undefined
  readonly mode: CountMode
}

export type Row = Readonly<Record<string, Json>>

export type InsertRequest = Target &
  Written & {
    readonly kind: 'insert'
    readonly rows: readonly Row[]
    readonly conflict: { readonly columns: readonly string[]; readonly update: Row | undefined } | undefined
    readonly defaultToNull: boolean
  }

export type UpdateRequest = Target &
  Written &
  Bounded & { readonly kind: 'update'; readonly set: Row; readonly count: CountMode | undefined }

export type DeleteRequest = Target &
  Written &
  Bounded & {
    readonly kind: 'delete'
    /** `resource_id` of the body: which column it means is known with the catalogue. */
    readonly resource: Json | undefined
    readonly count: CountMode | undefined
  }

export type WriteRequest = InsertRequest | UpdateRequest | DeleteRequest
export type DataRequest = ReadRequest | CountRequest | WriteRequest
