export type Action = 'read' | 'write' | 'delete'
export type TableRight = { readonly schema: string; readonly table: string; readonly action: Action }

/**
 * What the caller of a request may do. Every plan is made with it, so no feature can forget a right, and no failure tells a caller
 * about a table that they may not read.
 */
export type Rights = {
  may(right: TableRight): boolean
  /** Throws the refusal when one of them is missing. */
  require(rights: readonly TableRight[]): void
}

/** Of the service itself, which acts for nobody. */
export const EVERY_RIGHT: Rights = { may: () => true, require: () => {} }

export const toRead = ({ schema, name }: { readonly schema: string; readonly name: string }): TableRight => ({
  schema,
  table: name,
  action: 'read',
})
