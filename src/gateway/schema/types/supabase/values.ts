import type { Catalogue } from '#databases/plan/catalogue.ts'
import type { DeclaredType, TypeUse } from '#databases/plan/declared-types.ts'
import { isView } from '../../schema.ts'
import type { Described } from '../described.ts'
import { literal } from '../text.ts'
import { elementType, scalarType } from '../value-types.ts'

export type ValueTypes = {
  /** Of a value that is not null. Elements of arrays are taken for not null, as Supabase does. `category`: as that of a column. */
  typeOf(use: TypeUse & { readonly category?: string }): string
}

/** Refers to enums, composite types and rows by their place in `Database`. */
export function createValueTypes({ catalogue, declared, numbers }: Described): ValueTypes {
  const typeOf: ValueTypes['typeOf'] = ({ cast, base, category }) => {
    const found = declared.types.get(cast)
    if (found?.kind === 'domain') return typeOf(found.of)
    if (found?.kind === 'array') return `${typeOf(found.of)}[]`
    if (found !== undefined) return referenceTo(found, catalogue)
    if (category === 'C') return 'Json'
    return base.startsWith('_') ? `${elementType(base, numbers) ?? 'Json'}[]` : scalarType(base, numbers)
  }
  return { typeOf }
}

function referenceTo({ kind, schema, name }: DeclaredType, catalogue: Catalogue): string {
  const place = (part: string) => `Database[${literal(schema)}][${literal(part)}][${literal(name)}]`
  if (kind === 'enum') return place('Enums')
  if (kind === 'composite') return place('CompositeTypes')
  const table = catalogue.find(schema, name)
  // The row of a table that is not shown.
  if (table === undefined) return 'Json'
  return `${place(isView(table) ? 'Views' : 'Tables')}["Row"]`
}
