import type { Operation } from '#gateway/management/operations.ts'

/** Something that a change makes happen. `name` is a table of its own, with columns id and a; `parent` has a unique column `word`. */
export type Effect = {
  readonly sql?: (name: string) => string
  readonly route?: (name: string) => object
  readonly path: (name: string) => string
  /** `role`: one of the roles of callers. */
  readonly body?: (name: string, role: string) => object
  /** Besides the right of the operation. */
  readonly needs: (name: string) => readonly string[]
  readonly client?: string
  /** Rights that the key has in any case. */
  readonly holds?: readonly string[]
}

const none = () => []
const rows =
  (...actions: readonly ('read' | 'write' | 'delete')[]) =>
  (name: string) =>
    actions.map((action) => `${name}.${action}`)
const also =
  (first: (name: string) => readonly string[], ...more: readonly string[]) =>
  (name: string) => [...first(name), ...more]

export const path = (name: string) => `/management/tables/${name}`
const edits = (needs: Effect['needs'], ...operations: readonly ((name: string) => object)[]): Effect => ({
  path,
  body: (name) => ({ operations: operations.map((operation) => operation(name)) }),
  needs,
})
const edit = (needs: Effect['needs'], operation: string, more: object): Effect =>
  edits(needs, () => ({ operation, ...more }))
export const PLAIN = { name: 'b', data_type: 'text' }
const adding = (needs: Effect['needs'], column: object, more: Partial<Effect> = {}): Effect => ({
  ...edit(needs, 'add_column', { column: { ...PLAIN, ...column } }),
  ...more,
})
export const REFERENCE = { table: 'parent', column: 'id', on_delete: 'no action' }
const referring = (needs: Effect['needs'], column: object, reference: object): Effect =>
  adding(also(needs, 'parent.read', BYPASS), {
    data_type: 'bigint',
    ...column,
    references: { ...REFERENCE, ...reference },
  })
const bound = (name: string) => `alter table ${name} add f bigint references parent on delete cascade`
const looksAt = (name: string) => ({
  route_key: name.replaceAll('_', '-'),
  client_name: 'app',
  table_name: name,
  allowed_ops: ['fetch'],
})
/** In a database with row-level security: it tells about rows that policies hide from the key. */
const BYPASS = 'gateway.bypass_row_level_security'
const CASCADE = () => ({ cascade: true })
const column = (name: string) => `/management/tables/${name}/columns/a`
const OF_OTHERS = ['management.tables.write', 'management.functions.write']

/** Every operation has an entry, or this does not compile. */
export const EFFECTS: Readonly<Record<Operation, Readonly<Record<string, Effect>>>> = {
  capabilities: { nothing: { path: () => '/management/capabilities', needs: none } },
  list_functions: { nothing: { path: () => '/management/functions', needs: none } },
  read_row_level_security: {
    nothing: { path: (name) => `${path(name)}/row-level-security`, needs: none, client: 'app' },
  },
  read_realtime: { nothing: { path: (name) => `${path(name)}/realtime`, needs: none } },
  realtime: {
    'writers note their keys': {
      path: (name) => `${path(name)}/realtime`,
      body: () => ({ enabled: true }),
      needs: none,
    },
  },
  create_table: {
    'a table of its own': {
      path: () => '/management/tables',
      body: (name) => ({ table_name: `${name}_new`, columns: [PLAIN] }),
      needs: none,
    },
    'its rows show which values another table has, and go with them': {
      path: () => '/management/tables',
      body: (name) => ({
        table_name: `${name}_new`,
        columns: [{ ...PLAIN, data_type: 'bigint', references: { ...REFERENCE, on_delete: 'cascade' } }],
      }),
      needs: () => ['parent.read', BYPASS],
    },
  },
  edit_table: {
    'a column that nothing looks at': adding(none, {}),
    'a column for what a public route of the other client shows': adding(rows('read', 'write'), {}, { route: looksAt }), // biome-ignore format: a table
    'a column for a query of the other client': adding(rows('read', 'write'), {}, {
      route: (name) => ({ ...looksAt(name), table_name: null, allowed_ops: ['query'], query: `select * from ${name.toUpperCase()}` }),
    }), // biome-ignore format: a table
    'a column for what a function reads': adding(rows('read', 'write'), {}, {
      sql: (name) => `create function f_${name}() returns setof record language plpgsql as 'begin return query select * from ${name}; end'`,
    }), // biome-ignore format: a table
    'a column for a function that is bound to the table': adding(rows('read', 'write'), {}, {
      sql: (name) => `create function f_${name}() returns bigint language sql begin atomic; select count(*) from ${name}; end`,
    }), // biome-ignore format: a table
    'a column for what a policy of the table shows': adding(rows('read', 'write'), {}, {
      sql: (name) => `alter table ${name} enable row level security; create policy p on ${name} using (true)`,
    }), // biome-ignore format: a table
    'a column for what a policy of another table looks at': adding(rows('read', 'write'), {}, {
      sql: (name) => `create table ${name}_2 (id int); create policy p on ${name}_2 using (id in (select id from ${name}))`,
    }), // biome-ignore format: a table
    'values in all rows': adding(rows('read', 'write'), { default_expression: "'x'" }),
    'a number in all rows': adding(rows('read', 'write'), { data_type: 'serial' }),
    'failing with the second row': adding(also(rows('read', 'write'), BYPASS), { unique: true }),
    'failing with the first row': adding(also(rows('read', 'write'), BYPASS), { nullable: false }),
    'the rows that are written refer to others': referring(rows('read', 'write'), {}, {}),
    'all rows are deleted with a row of another table': referring(rows('delete', 'read', 'write'), { data_type: 'serial' }, { on_delete: 'cascade' }), // biome-ignore format: a table
    'all rows refer to one that is deleted': referring(rows('delete', 'read', 'write'), { default_expression: '1' }, { on_delete: 'CASCADE' }), // biome-ignore format: a table
    'rows that are written are deleted with those of another table': referring(rows('delete', 'read', 'write'), {}, { on_delete: 'cascade' }), // biome-ignore format: a table
    'rows lose their value with those of another table': referring(rows('read', 'write'), {}, { on_delete: 'set_null' }), // biome-ignore format: a table
    'rows get a value with those of another table': referring(rows('read', 'write'), {}, { on_delete: 'SET DEFAULT' }), // biome-ignore format: a table
    'rows that are written show which values the table has': edits(
      also(rows('read', 'write'), BYPASS),
      (name) => ({
        operation: 'add_column',
        column: { ...PLAIN, data_type: 'bigint', references: { table: name, column: 'id' } },
      }),
    ),
    'later rows have other values': edit(rows('read', 'write'), 'set_default', { column_name: 'a', default_expression: "'x'" }), // biome-ignore format: a table
    'later rows are deleted with a row of another table': {
      ...edit(rows('delete', 'read', 'write'), 'set_default', { column_name: 'f', default_expression: '1' }),
      sql: bound,
    },
    'later rows are deleted with a row of another table, under a new name': {
      ...edits(
        rows('delete', 'read', 'write'),
        () => ({ operation: 'rename_column', column_name: 'f', new_name: 'g' }),
        () => ({ operation: 'set_default', column_name: 'g', default_expression: '1' }),
      ),
      sql: bound,
    },
    'later rows lack a value': edit(rows('read', 'write'), 'drop_default', { column_name: 'a' }),
    'an answer whether all rows have a value': edit(also(rows('read', 'write'), BYPASS), 'set_not_null', { column_name: 'a' }), // biome-ignore format: a table
    'rows without a value': edit(rows('read', 'write'), 'drop_not_null', { column_name: 'a' }),
    'an answer whether all values fit': edit(also(rows('read', 'write'), BYPASS), 'alter_type', { column_name: 'a', data_type: 'uuid' }), // biome-ignore format: a table
    'other data under the name of a column': edit(rows('read', 'write'), 'rename_column', { column_name: 'a', new_name: 'b' }), // biome-ignore format: a table
    'other data under the name of a table': edits(rows('read', 'write'), (name) => ({ operation: 'rename_table', new_name: `${name}_new` })), // biome-ignore format: a table
    'other data for a public route of the other client, which deletes': {
      ...edits(rows('read', 'write', 'delete'), (name) => ({ operation: 'rename_table', new_name: `${name}_new` })), // biome-ignore format: a table
      route: (name) => ({ ...looksAt(name), table_name: `${name}_new`, allowed_ops: ['fetch', 'delete'] }),
    },
    'other data for a function that deletes': {
      ...edits(rows('read', 'write', 'delete'), (name) => ({ operation: 'rename_table', new_name: `${name}_new` })), // biome-ignore format: a table
      sql: (name) => `create function f_${name}() returns void language plpgsql as 'begin delete from ${name}_new; end'`, // biome-ignore format: a table
    },
  },
  drop_table: {
    'the table goes': { path, needs: none },
    'a view goes': { path, body: CASCADE, needs: none, sql: (name) => `create view v_${name} as select * from ${name}` }, // biome-ignore format: a table
    'a reference of another table goes': {
      path,
      body: CASCADE,
      needs: (name) => ['management.tables.write', ...rows('read', 'write')(`${name}_2`)],
      sql: (name) => `create table ${name}_2 (id bigint references ${name})`,
      holds: ['management.read'],
    },
    'a function goes, and a view of it': {
      path,
      body: CASCADE,
      needs: () => ['management.functions.drop'],
      sql: (
        name,
      ) => `create function f_${name}() returns setof ${name} language sql as 'select * from ${name}';
        create view v_${name} as select * from f_${name}()`,
    },
    'a column of another table goes': {
      path,
      body: CASCADE,
      needs: () => ['management.columns.drop'],
      sql: (name) => `create table ${name}_2 (id int, value ${name})`,
    },
    'a policy of another table goes': {
      path,
      body: CASCADE,
      needs: () => OF_OTHERS,
      sql: (name) =>
        `create table ${name}_2 (id int); create policy p on ${name}_2 using (id in (select id from ${name}))`,
    },
  },
  drop_column: {
    'the column goes, with its index': { path: column, needs: none, sql: (name) => `create index on ${name} (a, id)` }, // biome-ignore format: a table
    'a query of the other client finds another column of that name': { path: column, needs: rows('read'), route: looksAt }, // biome-ignore format: a table
    'a view goes': {
      path: column,
      body: CASCADE,
      needs: () => ['management.tables.drop'],
      sql: (name) => `create view v_${name} as select a from ${name}`,
    },
    'a policy of the table goes': {
      path: column,
      body: CASCADE,
      needs: also(rows('read'), ...OF_OTHERS),
      sql: (name) => `create policy p on ${name} using (a = 'x')`,
    },
  },
  create_index: {
    'reads are faster': {
      path: () => '/management/indexes',
      body: (name) => ({ table_name: name, columns: ['a'] }),
      needs: none,
    },
    'an answer whether all values differ': {
      path: () => '/management/indexes',
      body: (name) => ({ table_name: name, columns: ['a'], unique: true }),
      needs: also(rows('read'), BYPASS),
    },
  },
  drop_index: {
    'the index goes': {
      path: (name) => `/management/indexes/${name}_i`,
      needs: none,
      sql: (name) => `create index ${name}_i on ${name} (a)`,
    },
  },
  row_level_security: {
    'an expression decides about rows': {
      path: (name) => `${path(name)}/row-level-security`,
      body: (_name, role) => ({
        enabled: true,
        policies: [{ name: 'p', command: 'select', roles: [role], using: 'true' }],
      }),
      needs: () => ['management.functions.write'],
      client: 'app',
    },
    'users read, write and delete rows': {
      path: (name) => `${path(name)}/row-level-security`,
      body: () => ({ enabled: true, policies: [{ preset: 'owner' }] }),
      sql: (name) => `alter table ${name} add user_id uuid`,
      needs: rows('read', 'write', 'delete'),
      client: 'app',
    },
    'strangers read all rows': {
      path: (name) => `${path(name)}/row-level-security`,
      body: () => ({ enabled: true, policies: [{ preset: 'public_read' }] }),
      needs: also(rows('read'), 'gateway.bypass_row_level_security'),
      client: 'app',
    },
  },
  upsert_function: {
    'code runs as the role of the client': {
      path: () => '/management/functions',
      body: (name) => ({
        ddl: `create function f_${name}() returns int language sql as 'select 1'`,
      }),
      needs: none,
    },
  },
  drop_function: {
    'the function goes': {
      path: () => '/management/functions',
      body: (name) => ({ function_name: `f_${name}`, arg_types: [] }),
      needs: none,
      sql: (name) => `create function f_${name}() returns int language sql as 'select 1'`,
    },
  },
  install_extension: {
    'types and functions of the list': {
      path: () => '/management/extensions/install',
      body: () => ({ extension_name: 'citext', if_not_exists: true }),
      needs: none,
    },
  },
}
