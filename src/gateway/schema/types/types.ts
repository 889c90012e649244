import { requireAbility } from '#databases/drivers/abilities.ts'
import type { Backend } from '#databases/drivers/driver.ts'
import type { DeclaredTypes } from '#databases/plan/declared-types.ts'
import { defaultShape } from './default-shape.ts'
import { kyselyShape } from './kysely/shape.ts'
import { supabaseShape } from './supabase/shape.ts'
import type { Numbers } from './value-types.ts'

export const SHAPES = ['default', 'supabase', 'kysely'] as const
export type TypesRequest = {
  readonly shape: (typeof SHAPES)[number]
  readonly numbers: Numbers
  /** Whether the reader may see which functions there are. */
  readonly withFunctions: boolean
}

/** TypeScript for all tables. The text is deterministic: it changes only when the structure does. */
export async function generateTypes(backend: Backend, request: TypesRequest): Promise<string> {
  const { shape, numbers, withFunctions } = request
  if (shape === 'default') return defaultShape(await backend.catalogue(), numbers)
  // Kysely sends SQL of its own to the database, so it is of no use with another driver.
  const declaredTypes = shape === 'kysely' ? requireAbility(backend, 'declaredTypes') : backend.declaredTypes
  const [catalogue, found] = await Promise.all([backend.catalogue(), declaredTypes?.() ?? NOTHING])
  const declared = withFunctions ? found : { ...found, functions: [] }
  const described = { catalogue, declared, numbers }
  return shape === 'kysely' ? kyselyShape(described) : supabaseShape(described)
}

/** Of drivers that do not tell: types are those of the base types, and there are no functions. */
const NOTHING: DeclaredTypes = { types: new Map(), functions: [], updatableViews: [] }
