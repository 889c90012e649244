import { Type } from 'typebox'
import { named } from '#kernel/http/components.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import { success, successOf } from '../envelope.ts'
import { Name, type RouteParts, SchemaName } from './route-parts.ts'
import { createManagedTable } from './tables.ts'

const ColumnDefinition = Type.Object(
  {
    name: Name,
    data_type: Type.String({ maxLength: 200, examples: ['text'] }),
    nullable: Type.Optional(Type.Boolean({ default: true })),
    default_expression: Type.Optional(Nullable(Type.String({ maxLength: 1_000, examples: ['now()'] }))),
    primary_key: Type.Optional(Type.Boolean({ default: false })),
    unique: Type.Optional(Type.Boolean({ default: false })),
    references: Type.Optional(
      Type.Object({
        table: Type.String({ minLength: 1, maxLength: 130 }),
        column: Name,
        on_delete: Type.Optional(
          Type.Unsafe<string>({
            type: 'string',
            enum: ['no action', 'restrict', 'cascade', 'set null', 'set default'],
          }),
        ),
      }),
    ),
  },
  named('ColumnDefinition'),
)

const NewTable = Type.Object({
  schema_name: SchemaName,
  table_name: Type.String({ minLength: 1, maxLength: 63, examples: ['books'] }),
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
      Type.Object({
        name: Type.String(),
        data_type: Type.String(),
        nullable: Type.Boolean(),
        default_expression: Nullable(Type.String()),
        primary_key: Type.Boolean(),
      }),
    ),
  },
  named('ManagedTable'),
)

export function tableRoutes(app: App, { routeOf, changerOf }: RouteParts): void {
  app.route({
    ...routeOf('create_table'),
    schema: {
      operationId: 'createTable',
      summary: 'Create a table',
      body: NewTable,
      response: { 200: successOf(Table) },
    },
    handler: async (request) => {
      const { schema_name: schema = 'public', table_name: table, columns: asked = [] } = request.body
      const columns = asked.map((column) => ({
        ...column,
        default_expression: column.default_expression ?? undefined,
      }))
      const made = await createManagedTable(changerOf(request), { schema, table, columns })
      return success(`Created table ${schema}.${table}`, made)
    },
  })
}
