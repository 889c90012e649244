import type { Column, Table } from '#databases/plan/catalogue.ts'
import type { Rights } from '#databases/plan/rights.ts'
import type {
  Condition,
  CountRequest,
  DataRequest,
  DeleteRequest,
  InsertRequest,
  Json,
  ReadRequest,
  Row,
  Sort,
  UpdateRequest,
} from '#databases/request/request.ts'

/**
 * One family of types for every read and write of the gateway.
 * A *request* is a validated body; a *plan* is the request with every name found in the catalogue. A driver gets no other text of a request
 * than names of the catalogue and values to bind.
 */

/** One member of the returned rows. */
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
  /** Pairs of columns that must be equal, of the outer table and of this one. */
  readonly on: readonly { readonly outer: Column; readonly inner: Column }[]
}

/** A plan has its request, and beside it only what was looked up. With the rights, it is planned again when the structure has changed. */
type BasePlan<R extends DataRequest> = {
  readonly kind: R['kind']
  readonly request: R
  readonly rights: Rights
  readonly table: Table
}
type ReturnedRows = { readonly output: readonly Output[] }
type RowSelection = { readonly where: Condition<Column> | undefined; readonly sort: readonly Sort<Column>[] }

export type ReadPlan = BasePlan<ReadRequest> & ReturnedRows & RowSelection

export type CountPlan = BasePlan<CountRequest> & { readonly where: Condition<Column> | undefined }

export type Assignment = { readonly column: Column; readonly value: Json }

export type InsertPlan = BasePlan<InsertRequest> &
  ReturnedRows & {
    /** Every column that at least one row names. */
    readonly columns: readonly Column[]
    /** The rows of the request, with the values that its scope fixes. */
    readonly rows: readonly Row[]
    readonly conflict:
      | { readonly columns: readonly Column[]; readonly set: readonly Assignment[] | undefined }
      | undefined
    /** Every written row has to satisfy it, checked in the same statement: otherwise nothing is written, and it is `outside_route`. */
    readonly check?: Condition<Column>
  }

export type UpdatePlan = BasePlan<UpdateRequest> &
  ReturnedRows &
  RowSelection & {
    readonly set: readonly Assignment[]
    /** The new rows have to satisfy it, as those of an insert. */
    readonly check?: Condition<Column>
  }

export type DeletePlan = BasePlan<DeleteRequest> & ReturnedRows & RowSelection

/** A write of stored rows. */
export type ChangePlan = UpdatePlan | DeletePlan
export type WritePlan = InsertPlan | ChangePlan
export type Plan = ReadPlan | CountPlan | WritePlan
/** The plan of one kind of request. */
export type PlanOf<R extends DataRequest> = Extract<Plan, { readonly kind: R['kind'] }>
