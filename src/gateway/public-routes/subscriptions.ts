import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Body } from '#databases/request/fields.ts'
import { named } from '#kernel/http/document/components.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { columnsOf, conditionsOf } from '../data/grammar.ts'
import { withoutKeyInQuery } from '../realtime/access.ts'
import type { AskedTable } from '../realtime/live-table.ts'
import type { Realtime } from '../realtime/realtime.ts'
import {
  Events,
  lastIdOf,
  STREAM_BODY,
  STREAM_FAILURES,
  sendStream,
  WithSnapshot,
} from '../realtime/send-stream.ts'
import type { Stream } from '../realtime/stream.ts'
import { bodyWithin } from './call.ts'
import { ByKey } from './schemas.ts'

/** Operation subscribe: a GET, as a browser's EventSource sends it, or a POST whose body asks for less than the route opens. */
export function subscriptionRoutes(
  app: App,
  { config: { limits } }: Kernel,
  access: GatewayAccess,
  realtime: Realtime,
): void {
  const url = '/public/:route_key/subscribe'
  const config = {
    access: withoutKeyInQuery(access.publicStream),
    failures: ['outside_route', ...STREAM_FAILURES],
    // The record has origins of its own.
    cors: false,
  }
  const body = Type.Object(
    {
      table_name: Type.Optional(
        Type.String({ minLength: 1, description: 'Where the route fixes no table', examples: ['books'] }),
      ),
      columns: Type.Optional(columnsOf(limits.columns)),
      conditions: Type.Optional(conditionsOf(limits.conditions)),
      snapshot: WithSnapshot,
    },
    named('PublicStreamBody'),
  )
  app.route({
    method: 'GET',
    url,
    config,
    schema: {
      operationId: 'followPublicRoute',
      summary: 'Follow the rows of a public route: a snapshot of now, and then every change of it',
      params: ByKey,
      response: { 200: Events },
    },
    handler: async (request, reply) => sendStream(reply, await open(realtime, request, reply, {})),
  })
  app.route({
    method: 'POST',
    url,
    bodyLimit: STREAM_BODY,
    config,
    schema: {
      operationId: 'streamPublicRoute',
      summary: 'Follow a part of the rows of a public route',
      params: ByKey,
      body,
      response: { 200: Events },
    },
    // As the schema has checked it.
    handler: async (request, reply) =>
      sendStream(reply, await open(realtime, request, reply, request.body as Body)),
  })
}

function open(realtime: Realtime, request: FastifyRequest, reply: FastifyReply, body: Body): Promise<Stream> {
  const { publicCall: call } = request
  if (call === undefined) throw new Error('The access rule has not set the public call')
  const { record, scope } = call
  const { table_name, schema_name, columns, conditions } = bodyWithin(body, scope) as AskedTable // `prepare` checks it
  const called = scope.table === undefined ? {} : { called: record.routeKey }
  const table = { table_name, schema_name, columns, conditions, ...called }
  const asked = { tables: [table], snapshot: body.snapshot !== false, route: record.id }
  const resumed = { lastId: lastIdOf(request), proof: undefined }
  return realtime.open(request, reply, asked, resumed)
}
