import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Nullable, OneOf, spelled } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import { success, successOf } from '../envelope.ts'
import { CascadeFlag, nameLike, type RouteParts, SchemaName } from './route-parts.ts'
import { EDITS, newColumn, tableEdit } from './table-edits.ts'
import { createManagedTable, dropManagedColumn, dropManagedTable, editManagedTable } from './tables.ts'

const DELETE_ACTIONS = ['no action', 'restrict', 'cascade', 'set null', 'set default'] as const

/** As in SQL, in lower or upper case, and with underscores. */
const SPELLINGS = Object.fromEntries(
  DELETE_ACTIONS.flatMap((action) => {
    const spellings = [action, action.replaceAll(' ', '_')]
    return [...spellings, ...spellings.map((spelling) => spelling.toUpperCase())].map((spelling) => [
      spelling,
      action,
    ])
  }),
)

const ColumnDefinition = Type.Object(
  {
    name: nameLike('rating'),
    data_type: Type.String({ maxLength: 200, examples: ['text'] }),
    nullable: Type.Optional(Type.Boolean({ default: true })),
    default_expression: Type.Optional(Nullable(Type.String({ maxLength: 1_000, examples: ['now()'] }))),
    primary_key: Type.Optional(Type.Boolean({ default: false })),
    unique: Type.Optional(Type.Boolean({ default: false })),
    references: Type.Optional(
      Type.Object(
        {
          table: Type.String({ minLength: 1, maxLength: 130 }),
          column: nameLike('id'),
          on_delete: Type.Optional(OneOf(DELETE_ACTIONS, { default: 'no action', ...spelled(SPELLINGS) })),
        },
        named('ColumnReference'),
      ),
    ),
  },
  named('ColumnDefinition'),
)

const NewTable = Type.Object({
  schema_name: SchemaName,
  table_name: nameLike('books'),
  columns: Type.Optional(
    Type.Array(ColumnDefinition, {
      maxItems: 1_600,
      examples: [
        [
          { name: 'title', data_type: 'text', nullable: false },
          { name: 'author', data_type: 'text' },
          { name: 'pages', data_type: 'integer' },
          { name: 'added_at', data_type: 'timestamptz', default_expression: 'now()' },
        ],
      ],
    }),
  ),
  if_not_exists: Type.Optional(
    Type.Boolean({ description: 'Accepted but ignored: an existing table gets 409' }),
  ),
})

const Table = Type.Object(
  {
    schema_name: Type.String(),
    table_name: Type.String(),
    columns: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          data_type: Type.String(),
          nullable: Type.Boolean(),
          default_expression: Nullable(Type.String()),
          primary_key: Type.Boolean(),
        },
        named('ManagedColumn'),
      ),
    ),
  },
  named('ManagedTable'),
)

/** One schema for all, so that a wrong member is named in the answer. */
const TableEditBody = Type.Object(
  {
    operation: OneOf(EDITS, { examples: ['add_column'] }),
    column: Type.Optional(ColumnDefinition),
    column_name: Type.Optional(nameLike('rating')),
    new_name: Type.Optional(nameLike('stars')),
    data_type: Type.Optional(Type.String({ maxLength: 200 })),
    default_expression: Type.Optional(Type.String({ maxLength: 1_000 })),
  },
  named('TableEdit'),
)

const EditedTable = Type.Object({
  schema_name: SchemaName,
  operations: Type.Array(TableEditBody, {
    minItems: 1,
    maxItems: 100,
    description:
      'Run in this order, all or nothing. add_column needs `column`; rename_column `column_name` and `new_name`; set_default `column_name` and `default_expression`; alter_type `column_name` and `data_type`; drop_default, set_not_null and drop_not_null `column_name`; rename_table `new_name`',
    examples: [
      [
        { operation: 'add_column', column: { name: 'rating', data_type: 'integer' } },
        { operation: 'set_default', column_name: 'rating', default_expression: '0' },
      ],
    ],
  }),
})

const ByTable = Type.Object({ table_name: nameLike('books') })
const ByColumn = Type.Object({ table_name: nameLike('books'), column_name: nameLike('rating') })
const Dropped = Type.Object({ schema_name: SchemaName, cascade: CascadeFlag })
const TableReference = Type.Object({ schema_name: Type.String(), table_name: Type.String() })

export function tableRoutes(app: App, { routeOf, changerOf }: RouteParts): void {
  app.route({
    ...routeOf('create_table'),
    schema: {
      operationId: 'createTable',
      summary: 'Create a table',
      body: NewTable,
      response: { 200: successOf(Table) },
    },
    handler: async (request, reply) => {
      const { schema_name: schema = 'public', table_name: table, columns: asked = [] } = request.body
      const columns = asked.map(newColumn)
      const made = await createManagedTable(changerOf(request, reply), { schema, table, columns })
      return success(`Created table ${schema}.${table}`, made)
    },
  })
  app.route({
    ...routeOf('edit_table'),
    schema: {
      operationId: 'editTable',
      summary: 'Add, rename and change columns of a table, and rename it',
      params: ByTable,
      body: EditedTable,
      response: { 200: successOf(Table) },
    },
    handler: async (request, reply) => {
      const { schema_name: schema = 'public', operations } = request.body
      const at = { schema, table: request.params.table_name }
      const edited = await editManagedTable(changerOf(request, reply), at, operations.map(tableEdit))
      return success(`Changed table ${schema}.${edited.table_name}`, edited)
    },
  })
  app.route({
    ...routeOf('drop_table'),
    schema: {
      operationId: 'dropTable',
      summary: 'Drop a table with its rows',
      params: ByTable,
      body: Dropped,
      response: { 200: successOf(TableReference) },
    },
    handler: async (request, reply) => {
      const { schema_name: schema = 'public', cascade = false } = request.body
      const at = { schema, table: request.params.table_name }
      const dropped = await dropManagedTable(changerOf(request, reply), at, { cascade })
      return success(`Dropped table ${schema}.${at.table}`, dropped)
    },
  })
  app.route({
    ...routeOf('drop_column'),
    schema: {
      operationId: 'dropColumn',
      summary: 'Drop a column with its values',
      params: ByColumn,
      body: Dropped,
      response: { 200: successOf(Table) },
    },
    handler: async (request, reply) => {
      const { schema_name: schema = 'public', cascade = false } = request.body
      const { table_name: table, column_name: column } = request.params
      const left = await dropManagedColumn(changerOf(request, reply), { schema, table }, { column, cascade })
      return success(`Dropped column ${column} of ${schema}.${table}`, left)
    },
  })
}
