import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Clients } from '#databases/clients/clients.ts'
import { FAILURES_OF } from '#databases/failures.ts'
import type { Body } from '#databases/request/fields.ts'
import { open } from '#kernel/http/access.ts'
import { allowOrigin, sendPreflight } from '#kernel/http/cors.ts'
import { edge } from '#kernel/http/failures.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { NOT_EMPTY, Parsed } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { fetchCsv, onlyJson, ROWS_TYPES, sendCsv, wantsCsv } from '../data/csv.ts'
import { fetchRows, insertRows, withStripNulls, writeRows } from '../data/data.ts'
import { RowsRead, RowsWritten } from '../data/responses.ts'
import { dataBodies, InFormat, ReadHeaders } from '../data/schemas.ts'
import { sendFetched, sendWritten } from '../data/send-result.ts'
import { success, successOf } from '../envelope.ts'
import { paginationOf } from '../pagination.ts'
import { Ran, sendExecuted } from '../sql/send-executed.ts'
import { FOREIGN_ORIGIN } from './access.ts'
import { bodyWithin, runFixedSql } from './call.ts'
import { changeRoute, createRoute, existingRoute, pageOfRoutes, removeRoute } from './public-routes.ts'
import {
  ByCall,
  ByKey,
  factsOf,
  ParamsBody,
  ROUTE_FILTER,
  RouteKey,
  RouteRecord,
  recordOf,
  throughRoute,
} from './schemas.ts'

const REFUSED_ROUTE = [
  'public_route_not_found',
  'invalid_public_route',
  'unknown_client',
  'invalid_identifier',
  'invalid_condition',
  'too_many_conditions',
  'too_deep',
  'invalid_sql',
  'unsupported_by_driver',
]

export function publicRouteRoutes(app: App, kernel: Kernel, clients: Clients, access: GatewayAccess): void {
  adminRoutes(app, kernel, clients, access)
  callRoutes(app, kernel, access)
}

function adminRoutes(app: App, kernel: Kernel, clients: Clients, access: GatewayAccess): void {
  const config = { access: access.operator('routes'), failures: REFUSED_ROUTE }
  const { query, pageOf } = paginationOf(kernel.config)
  const facts = factsOf(kernel)
  const page = { total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer() }
  app.route({
    method: 'GET',
    url: '/admin/public-routes',
    config: { access: access.operator('routes') },
    schema: {
      operationId: 'listPublicRoutes',
      summary: 'List public routes',
      querystring: Type.Object({ ...ROUTE_FILTER, ...query }),
      response: { 200: successOf(Type.Object({ public_routes: Type.Array(RouteRecord), ...page })) },
    },
    handler: async ({
      kernel,
      query: { client_name: clientName, is_active: isActive, search, ...query },
    }) => {
      const page = pageOf(query)
      const { routes, total } = await pageOfRoutes(kernel, { ...page, clientName, isActive, search })
      const data = { public_routes: routes.map((route) => recordOf(kernel, route)), total, ...page }
      return success(`Listed ${routes.length} public routes`, data)
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/public-routes',
    config: { ...config, failures: [...REFUSED_ROUTE, 'public_route_exists'] },
    schema: {
      operationId: 'createPublicRoute',
      summary: 'Create a public route',
      body: Type.Object({ route_key: RouteKey, ...facts }),
      response: { 201: successOf(RouteRecord) },
    },
    handler: async ({ kernel, body }, reply) => {
      const route = await createRoute(kernel, clients, body)
      return reply.code(201).send(success('Public route created', recordOf(kernel, route)))
    },
  })
  app.route({
    method: 'GET',
    url: '/admin/public-routes/:route_key',
    config: { ...config, failures: ['public_route_not_found'] },
    schema: {
      operationId: 'getPublicRoute',
      summary: 'One public route',
      params: ByKey,
      response: { 200: successOf(RouteRecord) },
    },
    handler: async ({ kernel, params }) =>
      success('Public route found', recordOf(kernel, await existingRoute(kernel, params.route_key))),
  })
  app.route({
    method: 'PATCH',
    url: '/admin/public-routes/:route_key',
    config,
    schema: {
      operationId: 'changePublicRoute',
      summary: 'Change a public route',
      params: ByKey,
      body: Type.Partial(Type.Object(facts), NOT_EMPTY),
      response: { 200: successOf(RouteRecord) },
    },
    handler: async ({ kernel, params, body }) => {
      const route = await changeRoute(kernel, clients, params.route_key, body)
      return success('Public route changed', recordOf(kernel, route))
    },
  })
  app.route({
    method: 'DELETE',
    url: '/admin/public-routes/:route_key',
    config: { ...config, failures: ['public_route_not_found'] },
    schema: {
      operationId: 'removePublicRoute',
      summary: 'Remove a public route',
      params: ByKey,
      response: { 200: successOf(ByKey) },
    },
    handler: async (request) => {
      const { route_key } = request.params
      await removeRoute(request.kernel, clients, route_key)
      return success('Public route removed', { route_key })
    },
  })
}

function callRoutes(app: App, kernel: Kernel, access: GatewayAccess): void {
  const bodies = [...dataBodies(kernel.config).plain.map(throughRoute), ParamsBody]
  const url = '/public/:route_key/:op'
  app.decorateRequest('publicCall', undefined)
  app.route({
    method: 'POST',
    url,
    bodyLimit: kernel.config.limits.body_bulk,
    config: {
      access: access.publicCall,
      produces: ROWS_TYPES,
      failures: ['outside_route', ...FAILURES_OF.data, ...FAILURES_OF.sql],
      // The record has origins of its own.
      cors: false,
    },
    schema: {
      operationId: 'callPublicRoute',
      summary: 'Run an operation of a public route',
      description:
        'The body and the answer are those of the operation. What the route fixes, the body leaves out or repeats.',
      params: ByCall,
      headers: ReadHeaders,
      body: Parsed(
        Type.Unsafe({
          type: 'object',
          anyOf: bodies,
        }),
      ),
      // The rows are already JSON text.
      querystring: InFormat,
      response: { 200: Type.Unsafe<object>({ anyOf: [RowsRead, RowsWritten, Ran] }) },
    },
    handler: (request, reply) => send(kernel, request, reply, request.body),
  })
  app.route({
    method: 'OPTIONS',
    url,
    config: { access: open, cors: false },
    handler: async (request, reply) => {
      const origins = await access.originsOf(routeKeyOf(request), request.clientAddress)
      const isAllowed = origins !== undefined && allowOrigin(kernel, request, reply, origins)
      const methods = isSubscription(request) ? ['POST', 'GET', 'HEAD'] : ['POST']
      if (!isAllowed)
        throw edge('method_not_allowed', { ...REFUSED_ORIGIN, headers: { allow: methods.join(', ') } })
      return sendPreflight(request, reply, methods.join(', '))
    },
  })
}

/** The same for a route that does not exist: a page learns nothing about routes. */
const REFUSED_ORIGIN = {
  message: FOREIGN_ORIGIN,
  hint: 'Add the origin to allowed_origins of the route, or to auth.trusted_origins',
}

const routeKeyOf = ({ params }: FastifyRequest): string =>
  (params as { readonly route_key: string }).route_key // of the path

const isSubscription = ({ params }: FastifyRequest): boolean =>
  (params as { readonly op: string }).op === 'subscribe' // of the path

async function send(
  kernel: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
  body: Body,
): Promise<FastifyReply> {
  const { publicCall: call } = request
  if (call === undefined) throw new Error('The access rule has not set the public call')
  const { op, record, scope } = call
  const caller = gatewayCaller(request)
  if (op === 'query') return sendExecuted(reply, await runFixedSql(kernel, caller, record.query ?? '', body))
  const within = bodyWithin(body, scope)
  if (wantsCsv(request)) {
    if (op !== 'fetch') throw onlyJson()
    return sendCsv(reply, await fetchCsv(kernel, caller, within))
  }
  if (op === 'subscribe') throw new Error('The access rule lets it come by no body of rows')
  if (op === 'insert') return sendWritten(reply, op, await insertRows(kernel, caller, within))
  if (op !== 'fetch') return sendWritten(reply, op, await writeRows(kernel, caller, within, op))
  const strips = request.headers[HEADER.stripNulls] === 'true'
  return sendFetched(reply, await fetchRows(kernel, caller, strips ? withStripNulls(within) : within))
}
