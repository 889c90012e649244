import { fail } from '#databases/failures.ts'
import type { Column, Table } from '#databases/plan/catalogue.ts'
import type { Row, TableName } from '#databases/request/request.ts'

/** A function that can be called with named arguments. */
export type CallableFunction = {
  readonly schema: string
  readonly name: string
  readonly arguments: readonly Argument[]
  /** Columns of its rows; a single value is one column. Undefined: it returns nothing. */
  readonly columns: readonly Column[] | undefined
  /** The call must name the column, because the function returns a bare value. */
  readonly isValue: boolean
}

export type Argument = { readonly column: Column; readonly optional: boolean; readonly variadic: boolean }

/** Chooses the overload by argument names: every required argument is given, and no unknown one. */
export function chooseFunction(
  candidates: readonly CallableFunction[],
  asked: TableName,
  given: Row,
): CallableFunction {
  const names = Object.keys(given)
  const fitting = candidates.filter((candidate) => fits(candidate, names))
  const fewest = Math.min(...fitting.map((candidate) => candidate.arguments.length))
  const [chosen, ...others] = fitting.filter((candidate) => candidate.arguments.length === fewest)
  if (chosen !== undefined && others.length === 0) return chosen
  const details = { schema_name: asked.schema, function_name: asked.table }
  if (candidates.length === 0)
    throw fail('function_not_found', {
      message: `There is no function ${asked.schema}.${asked.table}`.slice(0, 200),
      hint: 'Functions of the system and of extensions are not offered, nor those with arguments that have no name.',
      details,
    })
  const signatures = candidates.map(signature)
  throw fail('invalid_arguments', {
    hint: `${chosen ? 'More than one function takes' : 'No function takes'} these arguments: ${signatures.join(' · ')}`,
    details: { ...details, given: names, signatures },
  })
}

function fits(candidate: CallableFunction, names: readonly string[]): boolean {
  const parameters = candidate.arguments
  return (
    names.every((name) => parameters.some(({ column }) => column.name === name)) &&
    parameters.every(({ column, optional }) => optional || names.includes(column.name))
  )
}

const signature = ({ name, arguments: parameters }: CallableFunction): string =>
  `${name}(${parameters.map(({ column, optional }) => `${column.name} ${column.type}${optional ? ' optional' : ''}`).join(', ')})`

/** The rows of a function as a table without relations, so that the grammar of a fetch applies to them. */
export const asTable = ({ schema, name, columns = [] }: CallableFunction): Table => ({
  schema,
  name,
  kind: 'view',
  estimatedRows: 0,
  columns: new Map(columns.map((column) => [column.name, column])),
  primaryKey: [],
  constraints: [],
})
