import type { Column, Table } from '#databases/plan/catalogue.ts'
import type { TypeUse } from '#databases/plan/declared-types.ts'
import { byName, sortedTables } from '../../schema.ts'
import type { Described } from '../described.ts'
import { block, member, union } from '../text.ts'
import { declarationsFor } from './declarations.ts'
import { createTypeNames } from './names.ts'
import { createColumnTypes } from './values.ts'

/** The shape of kysely-codegen, for Kysely on node-postgres: its types are those that `pg` reads and takes, not those of the gateway's JSON. */
export function kyselyShape({ catalogue, declared, numbers }: Described): string {
  const nameOf = createTypeNames()
  const enums = [...declared.types]
    .flatMap(([cast, type]) => (type.kind === 'enum' ? [{ cast, ...type }] : []))
    .sort(byName)
    .map((type) => ({ ...type, typeName: nameOf(type) }))
  const columnType = createColumnTypes(declared, new Map(enums.map(({ cast, typeName }) => [cast, typeName])))
  const tables = sortedTables(catalogue)
    .filter(isNameable)
    .map((table) => ({ table, typeName: nameOf(table) }))
  const members = tables.map(({ table, typeName }) => `${member(keyOf(table))}: ${typeName}`)
  return [
    declarationsFor(numbers),
    ...enums.map(({ typeName, labels }) => `export type ${typeName} = ${union(labels)}\n`),
    ...tables.map(({ table, typeName }) => interfaceOf(typeName, columnsOf(table, columnType))),
    interfaceOf('DB', members),
  ].join('\n')
}

const interfaceOf = (name: string, members: readonly string[]): string =>
  `export interface ${name} ${block(members, '{}')}\n`

/** Kysely takes a dot in the name of a table for the end of its schema. */
const isNameable = ({ schema, name }: Table): boolean => !schema.includes('.') && !name.includes('.')

const keyOf = ({ schema, name }: Table): string => (schema === 'public' ? name : `${schema}.${name}`)

const columnsOf = ({ columns }: Table, typeOf: (use: TypeUse) => string): readonly string[] =>
  [...columns.values()].map((column) => `${member(column.name)}: ${generated(column, typeOf(column))}`)

function generated({ nullable, writable, fallback }: Column, type: string): string {
  const held = nullable ? `${type} | null` : type
  if (!writable) return `GeneratedAlways<${held}>`
  return fallback === undefined ? held : `Generated<${held}>`
}
