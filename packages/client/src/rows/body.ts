/** A condition of a request, as the service reads it. */
export type Condition =
  | { readonly column: string; readonly operator: string; readonly value: unknown }
  | { readonly operator: 'or'; readonly value: string }
  | { readonly or: readonly Condition[] }
  | { readonly and: readonly Condition[] }
  | { readonly not: readonly Condition[] }

export type Sort = {
  readonly field: string
  readonly direction: 'asc' | 'desc'
  readonly nulls?: 'first' | 'last'
}

export type CountMode = 'exact' | 'estimated' | 'planned'

export type Target = { readonly table_name: string; readonly schema_name: string }

/** The body of a fetch. No columns: all of them. */
export type ReadBody = Target & {
  readonly columns: readonly string[]
  readonly conditions: readonly Condition[]
  readonly sort_by: readonly Sort[]
  readonly limit?: number
  readonly offset?: number
  readonly count?: CountMode
  readonly head?: boolean
}
