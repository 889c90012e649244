import type { FastifyReply, FastifyRequest } from 'fastify'
import { FAILURES_OF } from '#databases/failures.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { isGet } from '#kernel/http/methods.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../access.ts'
import { gatewayCaller } from '../caller.ts'
import { success } from '../envelope.ts'
import { bytesOf, countRows, type Fetched, fetchRows, insertRows, writeRows } from './data.ts'
import { createInsertBatching, readInsertWindow } from './insert-batching.ts'
import { asksForFresh, createReadCache, type Outcome } from './read-cache.ts'
import { Counted, RowsRead, RowsWritten, TransactionDone } from './responses.ts'
import { dataBodies, InsertHeaders, ReadHeaders, TransactionHeaders } from './schemas.ts'
import { sendFetched, sendTransaction, sendWritten } from './send-result.ts'
import { runTransaction } from './transaction.ts'

const withOutcome = (reply: FastifyReply, outcome: Outcome): FastifyReply =>
  outcome === undefined ? reply : reply.header(HEADER.cache, outcome)

const asksToStrip = ({ headers }: FastifyRequest): boolean => headers[HEADER.stripNulls] === 'true'

export function dataRoutes(app: App, kernel: Kernel, access: GatewayAccess): void {
  const config = { access: access.data, failures: FAILURES_OF.data }
  const bodies = dataBodies(kernel.config)
  const { limits } = kernel.config
  const bodyLimit = limits.body_bulk
  const batches = createInsertBatching()
  const fetchCache = createReadCache<Fetched>(kernel, {
    max: kernel.config.gateway.cache.max_size,
    weigh: bytesOf,
  })
  const countCache = createReadCache<number>(kernel, { max: 10_000, weigh: () => 1 })
  app.addHook('preClose', batches.close)
  const read = async (request: FastifyRequest, reply: FastifyReply, body: object) => {
    const event = isGet(request) ? 'gateway_data' : 'gateway_fetch'
    const asked = { event, cache: fetchCache, fresh: asksForFresh(request.headers['cache-control']) } as const
    // The body's own member beats the header.
    const whole = asksToStrip(request) ? { strip_nulls: true, ...body } : { ...body }
    const fetched = await fetchRows(kernel, gatewayCaller(request), whole, asked)
    return sendFetched(withOutcome(reply, fetched.outcome), fetched)
  }

  for (const url of ['/gateway/fetch', '/gateway/data']) {
    app.route({
      method: 'POST',
      url,
      config,
      schema: {
        operationId: 'fetchRows',
        summary: 'Read rows',
        headers: ReadHeaders,
        body: bodies.FetchBody,
        response: { 200: RowsRead },
      },
      handler: (request, reply) => read(request, reply, request.body),
    })
  }
  app.route({
    method: 'GET',
    url: '/data',
    config,
    schema: {
      operationId: 'fetchRowsByValue',
      summary: 'Read the rows where one column has one value',
      headers: ReadHeaders,
      querystring: bodies.DataQuery,
      response: { 200: RowsRead },
    },
    handler: (request, reply) => {
      const { view, eq_column, eq_value, sort_by, sort_direction, api_key: _, ...rest } = request.query
      const order =
        sort_by === undefined ? {} : { sort_by: { field: sort_by, direction: sort_direction ?? 'asc' } }
      return read(request, reply, {
        ...rest,
        ...order,
        view_name: view,
        conditions: [{ eq_column, eq_value }],
      })
    },
  })
  app.route({
    method: 'POST',
    url: '/query/count',
    config,
    schema: {
      operationId: 'countRows',
      summary: 'Count rows',
      body: bodies.CountBody,
      response: { 200: Counted },
    },
    handler: async (request, reply) => {
      const caller = gatewayCaller(request)
      const asked = { cache: countCache, fresh: asksForFresh(request.headers['cache-control']) }
      const { count, cacheKey, milliseconds, outcome } = await countRows(kernel, caller, request.body, asked)
      withOutcome(reply, outcome)
      const data = {
        count,
        db_name: caller.client.name,
        duration_ms: milliseconds,
        cache_key: cacheKey,
        cache_lookup_outcome: outcome ?? 'bypass',
      }
      return { ...success(`Counted ${count} rows`, data), count }
    },
  })
  for (const method of ['PUT', 'POST'] as const) {
    app.route({
      method,
      url: '/gateway/insert',
      bodyLimit,
      // Those who ask for it wait as long as their window before they begin.
      config: { ...config, timeout: limits.timeout + limits.insert_window },
      schema: {
        operationId: 'insertRows',
        summary: 'Insert rows',
        headers: InsertHeaders,
        body: bodies.InsertBody,
        response: { 200: RowsWritten },
      },
      handler: async (request, reply) => {
        const caller = gatewayCaller(request)
        const milliseconds = readInsertWindow(request.headers[HEADER.insertWindow], limits.insert_window)
        const bytes = Number(request.headers['content-length'] ?? bodyLimit)
        const result = await insertRows(kernel, caller, request.body, (insert) =>
          milliseconds === undefined ? insert.run() : batches.insert(insert, { milliseconds, bytes }),
        )
        return sendWritten(reply, 'Data inserted successfully', result)
      },
    })
  }
  app.route({
    method: 'POST',
    url: '/gateway/update',
    bodyLimit,
    config,
    schema: {
      operationId: 'updateRows',
      summary: 'Change the rows that fit the conditions',
      body: bodies.UpdateBody,
      response: { 200: RowsWritten },
    },
    handler: async (request, reply) =>
      sendWritten(
        reply,
        'Data updated successfully',
        await writeRows(kernel, gatewayCaller(request), request.body, 'update'),
      ),
  })
  for (const method of ['DELETE', 'POST'] as const) {
    app.route({
      method,
      url: '/gateway/delete',
      config,
      schema: {
        operationId: 'deleteRows',
        summary: 'Delete the rows that fit the conditions',
        body: bodies.DeleteBody,
        response: { 200: RowsWritten },
      },
      handler: async (request, reply) =>
        sendWritten(
          reply,
          'Data deleted successfully',
          await writeRows(kernel, gatewayCaller(request), request.body, 'delete'),
        ),
    })
  }
  app.route({
    method: 'POST',
    url: '/gateway/transaction',
    bodyLimit,
    config,
    schema: {
      operationId: 'runTransaction',
      summary: 'Run several operations, all or nothing; once under an Idempotency-Key',
      headers: TransactionHeaders,
      body: bodies.TransactionBody,
      response: { 200: TransactionDone },
    },
    handler: async (request, reply) => {
      const { operations, options = {}, idempotency_key: inBody } = request.body
      const inHeader = request.headers[HEADER.idempotencyKey]
      const keys = [inHeader, inBody].filter((key) => key !== undefined)
      const asked = { operations, options, keys, stripNulls: asksToStrip(request) }
      return sendTransaction(reply, await runTransaction(kernel, gatewayCaller(request), asked))
    },
  })
}
