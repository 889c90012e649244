import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Nullable, OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { success, successOf } from '../envelope.ts'
import { paginationOf } from '../pagination.ts'
import { dropManagedFunction, listFunctions, upsertManagedFunction } from './functions.ts'
import { nameLike, type RouteParts, SchemaName } from './route-parts.ts'

const FunctionDescription = Type.Object(
  {
    schema_name: Type.String(),
    function_name: Type.String(),
    kind: OneOf(['function', 'procedure', 'aggregate', 'window']),
    arguments: Type.String({ examples: ['month date'] }),
    arg_types: Type.Array(Type.String(), {
      description: 'Types of the input arguments, as a drop takes them',
    }),
    returns: Nullable(Type.String()),
    language: Type.String({ examples: ['sql'] }),
    volatility: OneOf(['immutable', 'stable', 'volatile']),
    security_definer: Type.Boolean(),
    owner: Type.String(),
    definition: Type.Optional(Nullable(Type.String())),
  },
  named('FunctionDescription'),
)

const FunctionText = Type.Object({
  ddl: Type.String({
    minLength: 1,
    maxLength: 100_000,
    description: 'Exactly one CREATE [OR REPLACE] FUNCTION',
    examples: [
      "create or replace function word_count(text text) returns int language sql immutable return cardinality(regexp_split_to_array(text, '\\s+'))",
    ],
  }),
})

const FunctionSignature = Type.Object({
  schema_name: SchemaName,
  function_name: nameLike('word_count'),
  arg_types: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
    maxItems: 100,
    description: 'Types of the input arguments, in their order',
    examples: [['text']],
  }),
})

const NAMED = { schema_name: Type.String(), function_name: Type.String(), signature: Type.String() }

export function functionRoutes(app: App, kernel: Kernel, { routeOf, changerOf }: RouteParts): void {
  const { query, pageOf } = paginationOf(kernel.config)
  app.route({
    ...routeOf('list_functions'),
    schema: {
      operationId: 'listFunctions',
      summary: 'Functions of this client',
      querystring: Type.Object({
        schema: Type.Optional(nameLike('public')),
        name_like: Type.Optional(Type.String({ minLength: 1, maxLength: 200, examples: ['report%'] })),
        include_system: Type.Optional(Type.Boolean({ default: false })),
        include_definition: Type.Optional(Type.Boolean({ default: false })),
        ...query,
      }),
      response: {
        200: successOf(
          Type.Object({
            functions: Type.Array(FunctionDescription),
            total: Type.Integer(),
            limit: Type.Integer(),
            offset: Type.Integer(),
          }),
        ),
      },
    },
    handler: async (request) => {
      const { schema, name_like: nameLike, include_system, include_definition } = request.query
      const page = pageOf(request.query)
      const listed = await listFunctions(gatewayCaller(request), {
        ...page,
        schema,
        nameLike,
        includeSystem: include_system === true,
        includeDefinition: include_definition === true,
      })
      return success(`Listed ${listed.functions.length} functions`, { ...listed, ...page })
    },
  })
  for (const method of ['PUT', 'POST'] as const)
    app.route({
      ...routeOf('upsert_function'),
      method,
      schema: {
        operationId: method === 'PUT' ? 'upsertFunction' : 'upsertFunctionByPost',
        summary: 'Create or replace a function',
        body: FunctionText,
        response: {
          200: successOf(
            Type.Object({ ...NAMED, definition: Nullable(Type.String()), replaced: Type.Boolean() }),
          ),
        },
      },
      handler: async (request, reply) => {
        const made = await upsertManagedFunction(changerOf(request, reply), request.body.ddl)
        return success(`${made.replaced ? 'Replaced' : 'Created'} function ${made.signature}`, made)
      },
    })
  app.route({
    ...routeOf('drop_function'),
    schema: {
      operationId: 'dropFunction',
      summary: 'Drop a function that nothing depends on',
      body: FunctionSignature,
      response: { 200: successOf(Type.Object(NAMED)) },
    },
    handler: async (request, reply) => {
      const { schema_name: schema = 'public', function_name: name, arg_types: argTypes } = request.body
      const dropped = await dropManagedFunction(changerOf(request, reply), { schema, name, argTypes })
      return success(`Dropped function ${dropped.signature}`, dropped)
    },
  })
}
