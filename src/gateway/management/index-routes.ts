import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import { success, successOf } from '../envelope.ts'
import { createManagedIndex, dropManagedIndex } from './indexes.ts'
import { nameLike, type RouteParts, SchemaName } from './route-parts.ts'

const INDEX_METHODS = ['btree', 'hash', 'gin', 'gist', 'brin', 'spgist'] as const

const NewIndex = Type.Object({
  schema_name: SchemaName,
  table_name: nameLike('books'),
  index_name: Type.Optional(
    Type.String({ minLength: 1, maxLength: 63, description: 'Absent: made from the table and the columns' }),
  ),
  columns: Type.Array(nameLike('author'), { minItems: 1, maxItems: 32, examples: [['author']] }),
  unique: Type.Optional(Type.Boolean({ default: false })),
  method: Type.Optional(OneOf(INDEX_METHODS, { default: 'btree' })),
})

const IndexReference = { schema_name: Type.String(), table_name: Type.String(), index_name: Type.String() }
const Index = Type.Object(
  {
    ...IndexReference,
    method: Type.Optional(Type.String()),
    unique: Type.Optional(Type.Boolean()),
    columns: Type.Optional(Type.Array(Type.String())),
    definition: Type.Optional(Type.String()),
  },
  named('ManagedIndex'),
)

export function indexRoutes(app: App, { routeOf, changerOf }: RouteParts): void {
  app.route({
    ...routeOf('create_index'),
    schema: {
      operationId: 'createIndex',
      summary: 'Create an index; writes to the table wait meanwhile, at most 50 seconds',
      body: NewIndex,
      response: { 200: successOf(Index) },
    },
    handler: async (request, reply) => {
      const { body } = request
      const { schema_name: schema = 'public', table_name: table, index_name: name, columns } = body
      const { unique = false, method = 'btree' } = body
      const made = await createManagedIndex(
        changerOf(request, reply),
        { schema, table },
        { name, columns, unique, method },
      )
      return success(`Created index ${made.index_name} on ${schema}.${table}`, made)
    },
  })
  app.route({
    ...routeOf('drop_index'),
    schema: {
      operationId: 'dropIndex',
      summary: 'Drop an index that no constraint needs',
      params: Type.Object({ index_name: nameLike('books_author_idx') }),
      body: Type.Object({ schema_name: SchemaName }),
      response: { 200: successOf(Type.Object(IndexReference)) },
    },
    handler: async (request, reply) => {
      const { schema_name: schema = 'public' } = request.body
      const dropped = await dropManagedIndex(changerOf(request, reply), schema, request.params.index_name)
      return success(`Dropped index ${schema}.${dropped.index_name}`, dropped)
    },
  })
}
