import type { Connection } from '../request.ts'
import type { Condition, Target } from './body.ts'

/** Under this, a builder that reads tells what it asks for, and of which service. Functions have none, since they may write. */
export const SOURCE: unique symbol = Symbol('source')

export type Source = {
  readonly connection: Connection
  readonly body: Target & { readonly columns?: readonly string[]; readonly conditions: readonly Condition[] }
  /** Makes another result of the same body. */
  readonly form: string
}
