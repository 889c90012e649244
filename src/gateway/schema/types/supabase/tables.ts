import type { Catalogue, Column, Constraint, Table } from '#databases/plan/catalogue.ts'
import { compare } from '../../schema.ts'
import type { Described } from '../described.ts'
import { block, listOf, literal, member } from '../text.ts'
import { NONE } from './fixed-types.ts'
import type { ValueTypes } from './values.ts'

export const tableType = (table: Table, { catalogue }: Described, valueTypes: ValueTypes): string =>
  block(
    [
      `Row: ${rowType(table, valueTypes)}`,
      ...writtenTypes(table, valueTypes, ({ writable }) => writable),
      `Relationships: ${relationshipsOf(table, catalogue)}`,
    ],
    NONE,
  )

export function viewType(view: Table, { declared }: Described, valueTypes: ValueTypes): string {
  const updatable = declared.updatableViews.find(
    ({ schema, name }) => schema === view.schema && name === view.name,
  )
  const written = updatable && writtenTypes(view, valueTypes, ({ name }) => updatable.columns.includes(name))
  return block([`Row: ${rowType(view, valueTypes)}`, ...(written ?? []), 'Relationships: []'], NONE)
}

const rowType = ({ columns }: Table, { typeOf }: ValueTypes): string =>
  block(
    [...columns.values()].map((column) => `${member(column.name)}: ${orNull(column, typeOf(column))}`),
    NONE,
  )

/** Rows of inserts and updates. Columns that the database computes take no value. */
function writtenTypes(
  { columns }: Table,
  { typeOf }: ValueTypes,
  isWritable: (column: Column) => boolean,
): readonly string[] {
  const membersOf = (isOptional: (column: Column) => boolean) =>
    [...columns.values()].map((column) =>
      isWritable(column)
        ? `${member(column.name)}${isOptional(column) ? '?' : ''}: ${orNull(column, typeOf(column))}`
        : `${member(column.name)}?: never`,
    )
  const inserted = membersOf(({ nullable, fallback }) => nullable || fallback !== undefined)
  return [
    `Insert: ${block(inserted, NONE)}`,
    `Update: ${block(
      membersOf(() => true),
      NONE,
    )}`,
  ]
}

const orNull = ({ nullable }: Column, type: string): string => (nullable ? `${type} | null` : type)

/** Foreign keys to tables of the same schema: these types name the other table without its schema. */
function relationshipsOf(table: Table, catalogue: Catalogue): string {
  const relationships = [...table.constraints]
    .sort((left, right) => compare(left.name, right.name))
    .flatMap((constraint) => relationshipOf(table, constraint, catalogue))
  return relationships.length === 0 ? '[]' : `[${block(relationships, '').slice(1, -1)}]`
}

function relationshipOf(
  table: Table,
  { name, columns, references }: Constraint,
  catalogue: Catalogue,
): readonly string[] {
  if (references === undefined || references.schema !== table.schema) return []
  const isHidden = catalogue.find(references.schema, references.table)?.hasPolicies === true
  const members = [
    `foreignKeyName: ${literal(name)}`,
    `columns: ${listOf(columns.map(literal))}`,
    `isOneToOne: ${isUnique(table, columns)}`,
    `referencedRelation: ${literal(references.table)}`,
    `referencedColumns: ${listOf(references.columns.map(literal))}`,
    // Policies may hide the row, rows of child tables have no such key, and a key may not have been checked. For @gatehouse/client.
    ...(isHidden || table.hasChildren === true || references.isValid === false ? ['mayBeMissing: true'] : []),
  ]
  return [`${block(members, NONE)},`]
}

/** One row at most has these values. */
const isUnique = ({ constraints }: Table, columns: readonly string[]): boolean =>
  constraints.some(
    ({ kind, columns: unique }) =>
      (kind === 'primary key' || kind === 'unique') &&
      new Set(unique).symmetricDifference(new Set(columns)).size === 0,
  )
