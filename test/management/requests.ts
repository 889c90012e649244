import type { Operation } from '#gateway/management/operations.ts'

export type ManagementRequest = { readonly path: string; readonly body?: object }

/**
 * A request for each operation that succeeds once on the objects of `objectsFor` with the same name, on a client with row-level security. An operation without an entry does not
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
    body: { operations: [{ operation: 'add_column', column: { name: 'c', data_type: 'text' } }] },
  }),
  drop_table: (name) => ({ path: `/management/tables/${name}`, body: {} }),
  drop_column: (name) => ({ path: `/management/tables/${name}/columns/a`, body: {} }),
  create_index: (name) => ({ path: '/management/indexes', body: { table_name: name, columns: ['a'] } }),
  drop_index: (name) => ({ path: `/management/indexes/${name}_by_b`, body: {} }),
  install_extension: () => ({
    path: '/management/extensions/install',
    body: { extension_name: 'citext', if_not_exists: true },
  }),
  read_row_level_security: (name) => ({ path: `/management/tables/${name}/row-level-security` }),
  row_level_security: (name) => ({
    path: `/management/tables/${name}/row-level-security`,
    body: { enabled: true, policies: [] },
  }),
  read_realtime: (name) => ({ path: `/management/tables/${name}/realtime` }),
  realtime: (name) => ({ path: `/management/tables/${name}/realtime`, body: { enabled: true } }),
  list_functions: () => ({ path: '/management/functions' }),
  upsert_function: (name) => ({
    path: '/management/functions',
    body: { ddl: `create or replace function ${name}_new() returns int language sql return 1` },
  }),
  drop_function: (name) => ({
    path: '/management/functions',
    body: { function_name: `${name}_old`, arg_types: ['int'] },
  }),
}

/** SQL for the objects that these requests change. */
export const objectsFor = (name: string): string => `
  create table ${name} (id int primary key, a text, b text);
  create index ${name}_by_b on ${name} (b);
  create function ${name}_old(int) returns int language sql as 'select 1';`
