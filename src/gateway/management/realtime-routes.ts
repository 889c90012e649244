import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import type { App } from '#kernel/http/surface.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { success, successOf } from '../envelope.ts'
import { isRealtime, setRealtime } from './realtime.ts'
import { nameLike, type RouteParts, SchemaName } from './route-parts.ts'

const Params = Type.Object({ table_name: nameLike('books') })

const Realtime = Type.Object(
  { schema_name: Type.String(), table_name: Type.String(), enabled: Type.Boolean() },
  named('Realtime'),
)

export function realtimeRoutes(app: App, { routeOf, changerOf }: RouteParts): void {
  app.route({
    ...routeOf('read_realtime'),
    schema: {
      operationId: 'getRealtime',
      summary: 'Whether the rows of a table are live',
      params: Params,
      querystring: Type.Object({ schema_name: SchemaName }),
      response: { 200: successOf(Realtime) },
    },
    handler: async (request) => {
      const { schema_name: schema = 'public' } = request.query
      const { table_name: table } = request.params
      const enabled = await isRealtime(gatewayCaller(request), { schema, table })
      return success(`Live rows of ${schema}.${table}`, { schema_name: schema, table_name: table, enabled })
    },
  })
  app.route({
    ...routeOf('realtime'),
    schema: {
      operationId: 'setRealtime',
      summary: 'Make the rows of a table live, or end that',
      params: Params,
      body: Type.Object({
        schema_name: SchemaName,
        enabled: Type.Boolean({
          description: 'true: triggers note which keys change; false: they are removed',
          examples: [true],
        }),
      }),
      response: { 200: successOf(Realtime) },
    },
    handler: async (request, reply) => {
      const { schema_name: schema = 'public', enabled } = request.body
      const { table_name: table } = request.params
      await setRealtime(changerOf(request, reply), { schema, table }, enabled)
      return success(`Set live rows of ${schema}.${table}`, {
        schema_name: schema,
        table_name: table,
        enabled,
      })
    },
  })
}
