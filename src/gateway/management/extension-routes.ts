import { Type } from 'typebox'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import { success, successOf } from '../envelope.ts'
import { installManagedExtension } from './extensions.ts'
import { type RouteParts, SchemaName } from './route-parts.ts'

const NewExtension = Type.Object({
  extension_name: Type.String({ minLength: 1, maxLength: 63, examples: ['pg_trgm'] }),
  schema_name: SchemaName,
  if_not_exists: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Returns an extension that is installed already. Without it, that is a conflict (409)',
    }),
  ),
})

const Extension = Type.Object({
  extension_name: Type.String(),
  schema_name: Nullable(Type.String()),
  version: Nullable(Type.String()),
})

export function extensionRoutes(app: App, { routeOf, changerOf }: RouteParts): void {
  app.route({
    ...routeOf('install_extension'),
    schema: {
      operationId: 'installExtension',
      summary: 'Install an extension of PostgreSQL that the operator allows',
      body: NewExtension,
      response: { 200: successOf(Extension) },
    },
    handler: async (request, reply) => {
      const { extension_name: name, schema_name: schema = 'public', if_not_exists = false } = request.body
      const asked = { name, schema }
      const installed = await installManagedExtension(changerOf(request, reply), asked, {
        ifNotExists: if_not_exists,
      })
      return success(`Extension ${name} is installed`, installed)
    },
  })
}
