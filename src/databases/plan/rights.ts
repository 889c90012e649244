import type { TableRight } from '#kernel/rights.ts'

export type { Action, TableRight } from '#kernel/rights.ts'

/**
 * The rights of a request's caller. Planning requires them, so no feature can omit a right, and no failure describes a table that the
 * caller may not read.
 */
export type Rights = {
  may(right: TableRight): boolean
  /** Throws a failure when one of them is missing. */
  require(rights: readonly TableRight[]): void
}

/** The rights of the service itself. */
export const EVERY_RIGHT: Rights = { may: () => true, require: () => {} }

export const toRead = ({ schema, name }: { readonly schema: string; readonly name: string }): TableRight => ({
  schema,
  table: name,
  action: 'read',
})
