import type { DeclaredFunction } from '#databases/plan/declared-types.ts'
import type { Described } from '../described.ts'
import { block, literal, member } from '../text.ts'
import { NONE } from './fixed-types.ts'
import type { ValueTypes } from './values.ts'

/** Functions by name; one that is overloaded is a union. */
export function functionMembers(
  functions: readonly DeclaredFunction[],
  described: Described,
  valueTypes: ValueTypes,
): readonly string[] {
  const overloads = Map.groupBy(functions, ({ name }) => name)
  return [...overloads].map(([name, found]) => {
    // Functions that differ only in the types that the database tells apart are the same here.
    const types = new Set(found.map((one) => functionType(one, described, valueTypes)))
    return `${member(name)}: ${[...types].sort().join(' | ')}`
  })
}

function functionType(
  called: DeclaredFunction,
  { catalogue, declared }: Described,
  valueTypes: ValueTypes,
): string {
  const { returns, returnsSet } = called
  const row = declared.types.get(returns.cast)
  const isRow = row?.kind === 'row' && catalogue.find(row.schema, row.name) !== undefined
  const result = isRow ? valueTypes.typeOf(returns) : resultType(called, valueTypes)
  const members = [
    `Args: ${argumentsOf(called, valueTypes)}`,
    `Returns: ${returnsSet ? `${result}[]` : result}`,
    ...(isRow && row.schema === called.schema ? [setOf(row.name, returnsSet)] : []),
    ...valueColumn(called),
    // For @gatehouse/client, since the type of a list of rows is the same.
    ...(!returnsSet && result.endsWith('[]') ? ['IsSet: false'] : []),
  ]
  return block(members, NONE)
}

const argumentsOf = ({ arguments: parameters }: DeclaredFunction, { typeOf }: ValueTypes): string =>
  block(
    parameters.map(
      ({ column, optional }) => `${member(column.name)}${optional ? '?' : ''}: ${typeOf(column)}`,
    ),
    'never',
  )

function resultType({ columns, isValue, returns }: DeclaredFunction, { typeOf }: ValueTypes): string {
  if (columns === undefined) return 'undefined'
  if (isValue) return typeOf(returns)
  return block(
    columns.map((column) => `${member(column.name)}: ${typeOf(column)}`),
    NONE,
  )
}

/** The column of a value that goes out by an argument, for @gatehouse/client. Otherwise it has the name of the function. */
const valueColumn = ({ name, columns: [column] = [], isValue }: DeclaredFunction): readonly string[] =>
  isValue && column !== undefined && column.name !== name ? [`Column: ${literal(column.name)}`] : []

/** Which rows they are, so that relations of the table can be selected. */
const setOf = (table: string, isSet: boolean): string =>
  `SetofOptions: { from: "*"; to: ${literal(table)}; isOneToOne: false; isSetofReturn: ${isSet} }`
