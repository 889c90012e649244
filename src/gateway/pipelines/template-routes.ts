import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { grantOf } from '../caller/caller.ts'
import type { PipelineRegistry } from './registry.ts'
import { listTemplates } from './templates.ts'

const PipelineTemplate = Type.Object(
  {
    name: Type.String({ examples: ['cities-by-country'] }),
    description: Nullable(Type.String()),
    source_table: Nullable(Type.String()),
    sink_table: Nullable(Type.String()),
    has_transform: Type.Boolean(),
    source_client: Nullable(Type.String({ description: 'Null: the client of the request' })),
    sink_client: Nullable(Type.String({ description: 'Null: the client of the request' })),
    definition: Type.Unknown({ description: 'The pipeline as it is written in the file' }),
  },
  named('PipelineTemplate'),
)

export function templateRoutes(app: App, access: GatewayAccess, pipelines: PipelineRegistry): void {
  app.route({
    method: 'GET',
    url: '/pipelines/templates',
    config: { access: access.keyed('pipelines.run') },
    schema: {
      operationId: 'listPipelineTemplates',
      summary: 'Named pipelines',
      description:
        'The pipelines of the pipelines file. Those that name a client which the key may not use are left out.',
      response: { 200: Type.Object({ templates: Type.Array(PipelineTemplate) }) },
    },
    handler: async (request) => ({ templates: listTemplates(pipelines.all(), grantOf(request)) }),
  })
}
