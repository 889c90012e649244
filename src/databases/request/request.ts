/**
 * A request is a parsed and validated body; its names have not been looked up yet. plan/plan.ts has the plan of it, with every name found
 * in the catalogue.
 */
export type TableName = { readonly schema: string; readonly table: string }

/** A value of a request. Numbers that a double cannot represent are raw JSON (json.ts). */
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

/** A condition over columns: `C` is a name in a request and a column of the catalogue in a plan. */
export type Condition<C> = Terms<C> | { readonly kind: 'not'; readonly term: Condition<C> } | Comparison<C>

type Terms<C> = {
  readonly kind: 'all' | 'any'
  readonly terms: readonly Condition<C>[]
  /** The first term is a barrier: a row that does not satisfy it is given to no other term that could fail on it. */
  readonly isGuarded?: true
}

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

/** An item of the requested output: a column, all columns, or a relation with its own columns. */
export type ColumnTerm =
  | { readonly kind: 'all' }
  | { readonly kind: 'column'; readonly name: string; readonly alias?: string; readonly cast?: string }
  | RelationTerm

export type RelationTerm = {
  readonly kind: 'relation'
  /** A table, a foreign-key column or a constraint. */
  readonly name: string
  readonly schema?: string
  /** `table!constraint` chooses one of several foreign keys. */
  readonly hint?: string
  readonly alias?: string
  readonly columns: readonly ColumnTerm[]
}

export type Page = {
  readonly limit: number
  readonly offset: number
  /** No limit was given: one more row is fetched to know `has_more`. */
  readonly open: boolean
}

/**
 * The part of a client that a public route opens (gateway.md 13). A request keeps its scope, so that a plan, also a later one of the same
 * request, is always within it: plan/resolve.ts applies columns and conditions.
 */
export type Scope = {
  /** The only table. Undefined: every table that the caller's key may use. */
  readonly table: TableName | undefined
  /** ANDed to the conditions of the request. Every row that it writes has to satisfy them. */
  readonly where: Condition<string> | undefined
  /** The only columns that the request can name or get. Undefined: all. */
  readonly columns: readonly string[] | undefined
  /** Whether an insert may update existing rows on a conflict. */
  readonly allowsUpdate: boolean
}

/** `scope`: the part of the table that a public route opens; undefined for all other requests. */
type Target = { readonly table: TableName; readonly scope?: Scope }
type Output = {
  readonly columns: readonly ColumnTerm[]
  readonly head: boolean
  readonly stripNulls: boolean
}
/**
 * `namesColumns`: the body names the columns of the written rows to return; otherwise they are returned only to a caller who may read them.
 */
type WriteOutput = Output & { readonly namesColumns: boolean }
type RowSelection = {
  readonly where: Condition<string> | undefined
  readonly sort: readonly Sort<string>[]
  readonly limit: number | undefined
  readonly offset: number
  /** One row at most: if more match, nothing is written, and it is `not_one_row`. */
  readonly single: boolean
}

export type ReadRequest = Target &
  Output & {
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
  WriteOutput & {
    readonly kind: 'insert'
    readonly rows: readonly Row[]
    readonly conflict: { readonly columns: readonly string[]; readonly update: Row | undefined } | undefined
    readonly defaultToNull: boolean
  }

export type UpdateRequest = Target &
  WriteOutput &
  RowSelection & { readonly kind: 'update'; readonly set: Row; readonly count: CountMode | undefined }

export type DeleteRequest = Target &
  WriteOutput &
  RowSelection & {
    readonly kind: 'delete'
    /** `resource_id` of the body; the catalogue determines which column it means. */
    readonly resource: Json | undefined
    readonly count: CountMode | undefined
  }

export type WriteRequest = InsertRequest | UpdateRequest | DeleteRequest
export type DataRequest = ReadRequest | CountRequest | WriteRequest
