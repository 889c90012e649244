import type { Column, Table } from '#databases/plan/catalogue.ts'
import type { Rights } from '#databases/plan/rights.ts'

/**
 * One family of types for every read and write of the gateway.
 * A *request* is what a body asks for, checked by itself; a *plan* is the request with every name found in the catalogue.
 * Nothing below this line has seen text of a request that was not a name of the catalogue or a bound value.
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

export type Operator = (typeof operators)[number]
export const operators = [
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

/** One member of the rows that go out. */
export type Output =
  | { readonly kind: 'column'; readonly as: string; readonly column: Column; readonly cast?: string }
  | {
      readonly kind: 'relation'
      readonly as: string
      readonly relation: Relation
      readonly columns: readonly Output[]
    }

export type Relation = {
  readonly table: Table
  /** One row as an object or null; many as an array. */
  readonly many: boolean
  /** Column of the outer table = column of this one. */
  readonly on: readonly { readonly outer: Column; readonly inner: Column }[]
}

/** The request and its caller's rights stay beside the plan: when the structure has changed meanwhile, it is planned again. */
type Planned<R extends DataRequest> = {
  readonly request: R
  readonly rights: Rights
  readonly table: Table
}
type Answer = { readonly output: readonly Output[]; readonly head: boolean; readonly stripNulls: boolean }
type Chosen = {
  readonly where: Condition<Column> | undefined
  readonly sort: readonly Sort<Column>[]
  readonly limit: number | undefined
  readonly offset: number
}

export type ReadPlan = Planned<ReadRequest> &
  Answer & {
    readonly kind: 'read'
    readonly where: Condition<Column> | undefined
    readonly sort: readonly Sort<Column>[]
    readonly page: Page
    readonly count: CountMode | undefined
  }

export type CountPlan = Planned<CountRequest> & {
  readonly kind: 'count'
  readonly where: Condition<Column> | undefined
  readonly mode: CountMode
}

export type Assignment = { readonly column: Column; readonly value: Json }

export type InsertPlan = Planned<InsertRequest> &
  Answer & {
    readonly kind: 'insert'
    /** Every column that one of the rows names. */
    readonly columns: readonly Column[]
    readonly rows: readonly Row[]
    readonly conflict:
      | { readonly columns: readonly Column[]; readonly set: readonly Assignment[] | undefined }
      | undefined
    readonly defaultToNull: boolean
  }

export type UpdatePlan = Planned<UpdateRequest> &
  Answer &
  Chosen & {
    readonly kind: 'update'
    readonly set: readonly Assignment[]
    readonly count: CountMode | undefined
  }

export type DeletePlan = Planned<DeleteRequest> &
  Answer &
  Chosen & { readonly kind: 'delete'; readonly count: CountMode | undefined }

export type WritePlan = InsertPlan | UpdatePlan | DeletePlan
export type Plan = ReadPlan | CountPlan | WritePlan
/** The plan of one kind of request. */
export type PlanOf<R extends DataRequest> = Extract<Plan, { readonly kind: R['kind'] }>
