import type { Node } from 'libpg-query'
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
export type Writer = {
  readonly scope: ExpressionScope
  readonly refuse: Refuse
  expression(node: Node | undefined, depth: number): string
  select(node: Node | undefined, depth: number): string
}

/** A name of at most `max` parts, without `*`. */
export function namesText(fields: readonly Node[], max: number, refuse: Refuse): string {
  const names = fields.flatMap((field) => ('String' in field ? [field.String.sval ?? ''] : []))
  if (names.length !== fields.length || names.length === 0 || names.length > max)
    throw refuse('Name columns as column or table.column')
  return names.map(quoteName).join('.')
}
