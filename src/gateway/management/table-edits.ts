import type { NewColumn, TableEdit } from '#databases/drivers/management.ts'
import { fail } from '../errors.ts'

/** A column in a request. */
type AskedColumn = Omit<NewColumn, 'default_expression'> & { readonly default_expression?: string | null }

export const newColumn = (column: AskedColumn): NewColumn => ({
  ...column,
  default_expression: column.default_expression ?? undefined,
})

export const EDITS = [
  'add_column',
  'rename_column',
  'set_default',
  'drop_default',
  'set_not_null',
  'drop_not_null',
  'alter_type',
  'rename_table',
] as const satisfies readonly TableEdit['operation'][]

/** An edit in a request. */
type AskedEdit = {
  readonly operation: TableEdit['operation']
  readonly column?: AskedColumn
  readonly column_name?: string
  readonly new_name?: string
  readonly data_type?: string
  readonly default_expression?: string
}

/** 400 if the operation lacks a member. */
export function tableEdit(asked: AskedEdit): TableEdit {
  const { operation } = asked
  switch (operation) {
    case 'add_column':
      return { operation, column: newColumn(required(asked, 'column')) }
    case 'rename_column':
      return { operation, column: required(asked, 'column_name'), newName: required(asked, 'new_name') }
    case 'set_default':
      return {
        operation,
        column: required(asked, 'column_name'),
        expression: required(asked, 'default_expression'),
      }
    case 'alter_type':
      return { operation, column: required(asked, 'column_name'), dataType: required(asked, 'data_type') }
    case 'rename_table':
      return { operation, newName: required(asked, 'new_name') }
    default:
      return { operation, column: required(asked, 'column_name') }
  }
}

function required<M extends keyof AskedEdit>(asked: AskedEdit, member: M): NonNullable<AskedEdit[M]> {
  const value = asked[member]
  if (value !== undefined && value !== null) return value
  throw fail('invalid_definition', {
    message: `The operation ${asked.operation} needs ${member}`,
    details: { field: `operations.${member}`, operation: asked.operation },
  })
}
