import type { Node } from 'libpg-query'
import { nameParts } from '#databases/drivers/postgres/sql/parse-tree.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import type { Catalogue } from '#databases/plan/catalogue.ts'

export type ExpressionScope = {
  /** `policies[0].using`, for failures. */
  readonly field: string
  readonly catalogue: Catalogue
  /** The table of the policy: an expression that reads it again would recurse. */
  readonly table: { readonly schema: string; readonly name: string }
}

export type Refuse = (hint: string) => Error

export type ExpressionWriter = {
  readonly scope: ExpressionScope
  readonly refuse: Refuse
  expression(node: Node | undefined): string
  /** In parentheses, so precedence does not matter. */
  operand(node: Node | undefined): string
  /** Writes one level deeper. */
  nested(write: () => string): string
  /** Refuses what is nested too deep. */
  requireDepth(hint: string): void
}

export const listText = (nodes: readonly Node[] | undefined, { expression }: ExpressionWriter): string =>
  (nodes ?? []).map((node) => expression(node)).join(', ')

/** An operator without a schema, from the list. */
export function operatorText(name: readonly Node[] | undefined, { refuse }: ExpressionWriter): string {
  const [only, ...others] = nameParts(name)
  if (only === undefined || others.length > 0) throw refuse('An operator is named without its schema')
  if (!OPERATORS.has(only)) throw refuse(`The operator ${only} is not allowed in a policy`)
  return only
}

const OPERATORS: ReadonlySet<string> = new Set([
  '=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '%', '||',
  '->', '->>', '#>', '#>>', '@>', '<@', '&&', '?', '?|', '?&',
  // As the server writes like, not like, ilike and not ilike.
  '~~', '!~~', '~~*', '!~~*',
]) // biome-ignore format: a list

/** A name of at most `max` parts, without `*`. */
export function namesText(fields: readonly Node[], max: number, refuse: Refuse): string {
  const names = nameParts(fields)
  if (names.length !== fields.length || names.length === 0 || names.length > max)
    throw refuse('Name columns as column or table.column')
  return names.map(quoteName).join('.')
}
