import type { Operation } from '#gateway/management/operations.ts'

export type ManagementRequest = { readonly path: string; readonly body?: object }

/**
 * A request for each operation that succeeds once on the objects of `objectsFor` with the same name. An operation without an entry does not
 * compile.
 */
export const REQUESTS: Readonly<Record<Operation, (name: string) => ManagementRequest>> = {
  capabilities: () => ({ path: '/management/capabilities' }),
  create_table: (name) => ({
    path: '/management/tables',
    body: { table_name: `${name}_new`, columns: [{ name: 'a', data_type: 'text' }] },
  }),
  edit_table: (name) => ({
    path: `/management/tables/${name}`,
    body: { operations: [{ operation: 'rename_column', column_name: 'a', new_name: 'renamed' }] },
  }),
  drop_table: (name) => ({ path: `/management/tables/${name}`, body: {} }),
  drop_column: (name) => ({ path: `/management/tables/${name}/columns/a`, body: {} }),
  create_index: (name) => ({ path: '/management/indexes', body: { table_name: name, columns: ['a'] } }),
  drop_index: (name) => ({ path: `/management/indexes/${name}_by_b`, body: {} }),
  install_extension: () => ({
    path: '/management/extensions/install',
    body: { extension_name: 'citext', if_not_exists: true },
  }),
}

/** SQL for the objects that these requests change. */
export const objectsFor = (name: string): string => `
  create table ${name} (id int primary key, a text, b text);
  create index ${name}_by_b on ${name} (b);`
