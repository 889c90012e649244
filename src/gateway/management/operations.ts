import type { FIXED_RIGHTS } from '#kernel/rights.ts'

/**
 * All management operations: their routes, the rights that they require, and the type of the object in the audit log. Routes, changes and
 * the answer of capabilities are made from it.
 */
export const OPERATIONS = {
  capabilities: { method: 'GET', path: '/management/capabilities', right: 'management.read' },
  create_table: {
    method: 'POST',
    path: '/management/tables',
    right: 'management.tables.write',
    object: 'table',
  },
  edit_table: {
    method: 'PATCH',
    path: '/management/tables/:table_name',
    right: 'management.tables.write',
    object: 'table',
  },
  drop_table: {
    method: 'DELETE',
    path: '/management/tables/:table_name',
    right: 'management.tables.drop',
    object: 'table',
  },
  drop_column: {
    method: 'DELETE',
    path: '/management/tables/:table_name/columns/:column_name',
    right: 'management.columns.drop',
    object: 'column',
  },
  create_index: {
    method: 'POST',
    path: '/management/indexes',
    right: 'management.indexes.write',
    object: 'index',
  },
  drop_index: {
    method: 'DELETE',
    path: '/management/indexes/:index_name',
    right: 'management.indexes.drop',
    object: 'index',
  },
  read_row_level_security: {
    method: 'GET',
    path: '/management/tables/:table_name/row-level-security',
    right: 'management.read',
  },
  row_level_security: {
    method: 'PUT',
    path: '/management/tables/:table_name/row-level-security',
    right: 'management.tables.write',
    object: 'table',
  },
  read_realtime: {
    method: 'GET',
    path: '/management/tables/:table_name/realtime',
    right: 'management.read',
  },
  realtime: {
    method: 'PUT',
    path: '/management/tables/:table_name/realtime',
    right: 'management.tables.write',
    object: 'table',
  },
  list_functions: { method: 'GET', path: '/management/functions', right: 'management.functions.read' },
  upsert_function: {
    method: 'PUT',
    path: '/management/functions',
    right: 'management.functions.write',
    object: 'function',
  },
  drop_function: {
    method: 'DELETE',
    path: '/management/functions',
    right: 'management.functions.drop',
    object: 'function',
  },
  install_extension: {
    method: 'POST',
    path: '/management/extensions/install',
    right: 'management.extensions.write',
    object: 'extension',
  },
} as const satisfies Record<string, ReadRoute | ChangeRoute>

type Route = { readonly path: string; readonly right: keyof typeof FIXED_RIGHTS }
type ReadRoute = Route & { readonly method: 'GET' }
type ChangeRoute = Route & {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly object: 'table' | 'column' | 'index' | 'extension' | 'function'
}

export type Operation = keyof typeof OPERATIONS
/** The operations that change the structure. */
export type ChangeOperation = {
  [O in Operation]: (typeof OPERATIONS)[O] extends { object: string } ? O : never
}[Operation]
