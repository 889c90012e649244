import { type TSchema, Type } from 'typebox'
import { FAILURES_OF } from '#databases/failures.ts'
import { named } from '#kernel/http/document/components.ts'
import { Nullable, OneOf, PlainText } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { hasRight } from '../caller/caller-rights.ts'
import { listColumns, listConstraints, listIndexes, listTables, readWhich } from './schema.ts'
import { generateTypes, SHAPES } from './types/types.ts'

const Name = Type.String({ minLength: 1, maxLength: 63 })
/** Two names of 63 bytes in quotes. */
const Path = Type.String({
  minLength: 1,
  maxLength: 131,
  description: 'The table, optionally as schema.table',
  examples: ['books'],
})
const SCHEMA = {
  table_schema: Type.Optional(Name),
  schema_name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 63,
      description: 'Alias of table_schema',
      'x-alias-of': 'table_schema',
    }),
  ),
}
const InSchema = Type.Object(SCHEMA)
const Which = Type.Object({ table_name: Type.Optional(Path), ...SCHEMA })
const OneTable = Type.Object({ table_name: Path, ...SCHEMA })
const TypesAsked = Type.Object({
  shape: Type.Optional(
    OneOf(SHAPES, {
      description: 'supabase: as supabase-js reads it; kysely: as Kysely does',
      default: 'default',
    }),
  ),
  numbers: Type.Optional(
    OneOf(['exact'], {
      description:
        'exact: int8 may be a bigint and numeric a string, as a reader that keeps all digits needs them',
    }),
  ),
})
const TABLE_FIELDS = { table_schema: Type.String(), table_name: Type.String() }
const listOf = (name: string, item: TSchema) => ({ 200: Type.Object({ [name]: Type.Array(item) }) })

const Table = Type.Object(
  {
    ...TABLE_FIELDS,
    table_type: Type.String({ examples: ['BASE TABLE'] }),
    estimated_rows: Type.Number({ description: "The database's estimate; 0 if it has none" }),
  },
  named('TableDescription'),
)
const Column = Type.Object(
  {
    column_name: Type.String(),
    data_type: Type.String({ examples: ['character varying(20)'] }),
    column_default: Nullable(Type.String()),
    is_nullable: OneOf(['YES', 'NO']),
    base_type: Type.String({ description: 'The type below domains, without length', examples: ['varchar'] }),
    is_writable: Type.Boolean({ description: 'false: the database computes its values' }),
    enum_values: Nullable(Type.Array(Type.String(), { description: 'The labels of an enum, in its order' })),
  },
  named('ColumnDescription'),
)
const Constraint = Type.Object(
  {
    ...TABLE_FIELDS,
    constraint_name: Type.String(),
    constraint_type: Type.String({ examples: ['FOREIGN KEY'] }),
    columns: Type.Array(Type.String()),
    references: Nullable(
      Type.Object({ ...TABLE_FIELDS, columns: Type.Array(Type.String()) }, named('ReferencedColumns')),
    ),
    definition: Type.String(),
  },
  named('ConstraintDescription'),
)
const Index = Type.Object(
  {
    ...TABLE_FIELDS,
    index_name: Type.String(),
    method: Type.String({ examples: ['btree'] }),
    is_unique: Type.Boolean(),
    is_primary: Type.Boolean(),
    is_valid: Type.Boolean(),
    columns: Type.Array(Type.String(), {
      description: 'Columns, and expressions in the notation of the database',
    }),
    definition: Type.String(),
  },
  named('IndexDescription'),
)

export function schemaRoutes(app: App, access: GatewayAccess): void {
  const config = { access: access.fixed(['management.read']), failures: FAILURES_OF.structure }
  app.route({
    method: 'GET',
    url: '/schema/tables',
    config,
    schema: {
      operationId: 'listTables',
      summary: 'Tables and views',
      querystring: InSchema,
      response: listOf('tables', Table),
    },
    handler: async (request) => ({
      tables: await listTables(gatewayCaller(request).backend, readWhich(request.query)),
    }),
  })
  app.route({
    method: 'GET',
    url: '/schema/columns',
    config,
    schema: {
      operationId: 'listColumns',
      summary: 'Columns of a table',
      querystring: OneTable,
      response: listOf('columns', Column),
    },
    handler: async (request) => ({
      columns: await listColumns(gatewayCaller(request).backend, readWhich(request.query)),
    }),
  })
  app.route({
    method: 'GET',
    url: '/schema/constraints',
    config,
    schema: {
      operationId: 'listConstraints',
      summary: 'Keys, references and checks',
      querystring: Which,
      response: listOf('constraints', Constraint),
    },
    handler: async (request) => ({
      constraints: await listConstraints(gatewayCaller(request).backend, readWhich(request.query)),
    }),
  })
  app.route({
    method: 'GET',
    url: '/schema/indexes',
    config,
    schema: {
      operationId: 'listIndexes',
      summary: 'Indexes',
      querystring: Which,
      response: listOf('indexes', Index),
    },
    handler: async (request) => ({
      indexes: await listIndexes(gatewayCaller(request).backend, readWhich(request.query)),
    }),
  })
  app.route({
    method: 'GET',
    url: '/schema/types',
    config,
    schema: {
      operationId: 'typesOfTables',
      summary: 'TypeScript types for the rows of all tables, as text',
      querystring: TypesAsked,
      response: { 200: PlainText },
    },
    handler: async (request, reply) => {
      const { shape = 'default', numbers = 'number' } = request.query
      const caller = gatewayCaller(request)
      // As the list of functions demands.
      const withFunctions = hasRight(caller, 'management.functions.read')
      const text = await generateTypes(caller.backend, { shape, numbers, withFunctions })
      return reply.type('text/plain; charset=utf-8').send(text)
    },
  })
}
