import { Type } from 'typebox'
import { FAILURES_OF } from '#databases/failures.ts'
import { named } from '#kernel/http/components.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../access.ts'
import { gatewayCaller, kernelFor } from '../caller.ts'
import { success, successOf } from '../envelope.ts'
import type { AuditLog } from './audit.ts'
import { capabilities, createManagedTable } from './management.ts'
import { OPERATIONS } from './operations.ts'

const Name = Type.String({ minLength: 1, maxLength: 63 })

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
  schema_name: Type.Optional(Type.String({ minLength: 1, maxLength: 63, default: 'public' })),
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

const Capabilities = Type.Object(
  {
    backend: Type.String({ examples: ['postgresql 18.4'] }),
    retention_mutation_supported: Type.Boolean(),
    replication_mutation_supported: Type.Boolean(),
    supported_operations: Type.Array(Type.String()),
    required_rights: Type.Array(Type.Object({ operation: Type.String(), required_right: Type.String() })),
    allowed_index_methods: Type.Array(Type.String()),
    allowed_column_data_types: Type.Array(Type.String()),
  },
  named('Capabilities'),
)

export function managementRoutes(app: App, kernel: Kernel, access: GatewayAccess, audit: AuditLog): void {
  const failures = [...FAILURES_OF.structure, 'audit_unavailable']
  app.route({
    method: OPERATIONS.capabilities.method,
    url: OPERATIONS.capabilities.path,
    config: { access: access.management(OPERATIONS.capabilities.right), failures },
    schema: {
      operationId: 'getCapabilities',
      summary: 'Supported management operations of this client',
      response: { 200: successOf(Capabilities) },
    },
    handler: async (request) =>
      success('Management capabilities', await capabilities(gatewayCaller(request))),
  })
  app.route({
    method: OPERATIONS.create_table.method,
    url: OPERATIONS.create_table.path,
    config: { access: access.management(OPERATIONS.create_table.right), failures },
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
      const made = await createManagedTable(kernelFor(kernel, request), gatewayCaller(request), audit, {
        schema,
        table,
        columns,
      })
      return success(`Created table ${schema}.${table}`, made)
    },
  })
}
