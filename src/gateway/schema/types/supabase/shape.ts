import type { Table } from '#databases/plan/catalogue.ts'
import type { DeclaredFunction, DeclaredType } from '#databases/plan/declared-types.ts'
import { byName, isView, sortedTables } from '../../schema.ts'
import type { Described } from '../described.ts'
import { block, listOf, literal, member, property, union } from '../text.ts'
import { HELPERS, jsonType, NONE } from './fixed-types.ts'
import { functionMembers } from './functions.ts'
import { tableType, viewType } from './tables.ts'
import { createValueTypes, type ValueTypes } from './values.ts'

/** The shape of Supabase's generator, which supabase-js and `createClient` of @gatehouse/client read. */
export function supabaseShape(described: Described): string {
  const valueTypes = createValueTypes(described)
  const parts = partsOf(described)
  const schemas = parts.map((part) => `${member(part.schema)}: ${schemaType(part, described, valueTypes)}`)
  const constants = parts.map(({ schema, enums }) => `${property(schema)}: ${constantsOf(enums)},`)
  return `${jsonType(described.numbers)}
export type Database = ${block(schemas, NONE)}
${HELPERS}
export const Constants = ${block(constants, '{}')} as const
`
}

type Part = {
  readonly schema: string
  readonly tables: readonly Table[]
  readonly functions: readonly DeclaredFunction[]
  readonly enums: readonly Declared<'enum'>[]
  readonly composites: readonly Declared<'composite'>[]
}

type Declared<Kind extends DeclaredType['kind']> = Extract<DeclaredType, { readonly kind: Kind }>

/** `public` is there even when it is empty, because clients and helpers begin with it. */
function partsOf({ catalogue, declared }: Described): readonly Part[] {
  const tables = sortedTables(catalogue)
  const types = [...declared.types.values()].sort(byName)
  const functions = [...declared.functions].sort(byName)
  const enums = types.filter((type) => type.kind === 'enum')
  const composites = types.filter((type) => type.kind === 'composite')
  const named = [tables, functions, enums, composites].flat()
  const schemas = new Set(['public', ...named.map(({ schema }) => schema)])
  return [...schemas].sort().map((schema) => {
    const isHere = (item: { readonly schema: string }) => item.schema === schema
    return {
      schema,
      tables: tables.filter(isHere),
      functions: functions.filter(isHere),
      enums: enums.filter(isHere),
      composites: composites.filter(isHere),
    }
  })
}

function schemaType(part: Part, described: Described, valueTypes: ValueTypes): string {
  const [views, tables] = [part.tables.filter(isView), part.tables.filter((table) => !isView(table))]
  const kinds = {
    Tables: tables.map((table) => `${member(table.name)}: ${tableType(table, described, valueTypes)}`),
    Views: views.map((view) => `${member(view.name)}: ${viewType(view, described, valueTypes)}`),
    Functions: functionMembers(part.functions, described, valueTypes),
    Enums: part.enums.map(({ name, labels }) => `${member(name)}: ${union(labels)}`),
    CompositeTypes: part.composites.map((type) => `${member(type.name)}: ${fieldsOf(type, valueTypes)}`),
  }
  const members = Object.entries(kinds).map(([kind, found]) => `${kind}: ${block(found, NONE)}`)
  // For @gatehouse/client, which types casts by it.
  return block(described.numbers === 'exact' ? [...members, 'Numbers: "exact"'] : members, NONE)
}

const fieldsOf = ({ fields }: Declared<'composite'>, { typeOf }: ValueTypes): string =>
  block(
    fields.map((field) => `${member(field.name)}: ${typeOf(field)} | null`),
    NONE,
  )

function constantsOf(enums: Part['enums']): string {
  const lists = enums.map(({ name, labels }) => `${property(name)}: ${listOf(labels.map(literal))},`)
  return block([`Enums: ${block(lists, '{}')},`], '{}')
}
