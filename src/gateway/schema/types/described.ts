import type { Catalogue } from '#databases/plan/catalogue.ts'
import type { DeclaredTypes } from '#databases/plan/declared-types.ts'
import type { Numbers } from './value-types.ts'

/** The structure that a shape shows. */
export type Described = {
  readonly catalogue: Catalogue
  readonly declared: DeclaredTypes
  readonly numbers: Numbers
}
