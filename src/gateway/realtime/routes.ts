import { Type } from 'typebox'
import type { Config } from '#kernel/config/config.ts'
import { named } from '#kernel/http/document/components.ts'
import { Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { columnsOf, conditionsOf } from '../data/grammar.ts'
import { success, successOf } from '../envelope.ts'
import { ticketAccess, withoutKeyInQuery } from './access.ts'
import type { AskedTable } from './live-table.ts'
import type { Realtime } from './realtime.ts'
import { Events, lastIdOf, STREAM_BODY, STREAM_FAILURES, sendStream, WithSnapshot } from './send-stream.ts'
import type { AskedStream } from './stream-parts.ts'
import { issueTicket } from './tickets.ts'

const streamBody = ({ limits }: Config) =>
  Type.Object(
    {
      tables: Type.Array(
        Type.Object(
          {
            table_name: Type.String({ minLength: 1, examples: ['books'] }),
            schema_name: Type.Optional(Type.String({ minLength: 1, examples: ['public'] })),
            columns: Type.Optional(columnsOf(limits.columns)),
            conditions: Type.Optional(conditionsOf(limits.conditions)),
          },
          named('FollowedTable'),
        ),
        { minItems: 1, maxItems: limits.stream_tables, examples: [[{ table_name: 'books' }]] },
      ),
      snapshot: WithSnapshot,
    },
    named('StreamBody'),
  )

type Body = { readonly tables: readonly AskedTable[]; readonly snapshot?: boolean }

const askedIn = ({ tables, snapshot = true }: Body): AskedStream => ({
  tables: tables.map(({ table_name, schema_name, columns, conditions }) => ({
    table_name,
    schema_name,
    columns,
    conditions,
  })),
  snapshot,
})

export function realtimeRoutes(app: App, kernel: Kernel, access: GatewayAccess, realtime: Realtime): void {
  const body = streamBody(kernel.config)
  const config = { access: withoutKeyInQuery(access.data), failures: STREAM_FAILURES }
  app.decorateRequest('realtimeTicket', undefined)
  app.addHook('preClose', (done) => {
    realtime.close()
    done()
  })
  app.route({
    method: 'POST',
    url: '/realtime',
    bodyLimit: STREAM_BODY,
    config,
    schema: {
      operationId: 'streamRows',
      summary: 'Follow rows: a snapshot of now, and then every change of it',
      body,
      response: { 200: Events },
    },
    handler: async (request, reply) => {
      const resumed = { lastId: lastIdOf(request), proof: undefined }
      return sendStream(reply, await realtime.open(request, reply, askedIn(request.body as Body), resumed))
    },
  })
  app.route({
    method: 'POST',
    url: '/realtime/tickets',
    bodyLimit: STREAM_BODY,
    config,
    schema: {
      operationId: 'createStreamTicket',
      summary: 'A ticket for the address of a stream, which a browser’s EventSource can open',
      body,
      response: {
        200: successOf(Type.Object({ ticket: Type.String(), expires_at: Timestamp }, named('StreamTicket'))),
      },
    },
    handler: async (request) => {
      const asked = askedIn(request.body as Body)
      await realtime.expect(request, asked)
      return success('Ticket issued', await issueTicket(kernel, request.headers, asked))
    },
  })
  app.route({
    method: 'GET',
    url: '/realtime',
    config: { access: ticketAccess(kernel, access.data), failures: STREAM_FAILURES },
    schema: {
      operationId: 'streamRowsByTicket',
      summary: 'The stream of a ticket: once, and again with the Last-Event-ID of one of its events',
      querystring: Type.Object({
        ticket: Type.String({
          minLength: 1,
          maxLength: 100,
          examples: ['Kc4nSm2T0tqNn9sJ4mXyVbqPzq0c1L5oQ7hW8eRuF3g'],
        }),
      }),
      response: { 200: Events },
    },
    handler: async (request, reply) => {
      const { realtimeTicket: ticket } = request
      if (ticket === undefined) throw new Error('the access rule has redeemed no ticket')
      const resumed = { lastId: lastIdOf(request), proof: ticket.proof }
      return sendStream(reply, await realtime.open(request, reply, ticket.asked, resumed))
    },
  })
}
