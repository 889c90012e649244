import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { FAILURES_OF } from '#databases/failures.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { isGet } from '#kernel/http/methods.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { success } from '../envelope.ts'
import { fetchCsv, ROWS_TYPES, sendCsv, wantsCsv } from './csv.ts'
import {
  bytesOf,
  countRows,
  type FetchAnswer,
  fetchRows,
  insertRows,
  renewedInsert,
  withStripNulls,
  writeRows,
} from './data.ts'
import { createInsertBatching, readInsertWindow } from './insert-batching.ts'
import { asksForFresh, createReadCache, type Outcome } from './read-cache.ts'
import { Counted, RowsRead, RowsWritten, TransactionDone } from './responses.ts'
import { dataBodies, InFormat, InsertHeaders, ReadHeaders, TransactionHeaders } from './schemas.ts'
import { sendFetched, sendTransaction, sendWritten } from './send-result.ts'
import { runTransaction } from './transaction.ts'

export function dataRoutes(app: App, kernel: Kernel, access: GatewayAccess): void {
  const config = { access: access.data, failures: FAILURES_OF.data }
  const parts = { kernel, config, bodies: dataBodies(kernel.config) }
  fetchRoutes(app, parts)
  countRoute(app, parts)
  insertRoutes(app, parts, access)
  updateRoute(app, parts)
  deleteRoutes(app, parts)
  transactionRoute(app, parts, access)
}

type Parts = {
  readonly kernel: Kernel
  readonly config: FastifyContextConfig
  readonly bodies: ReturnType<typeof dataBodies>
}

function fetchRoutes(app: App, { kernel, config, bodies }: Parts): void {
  const { max_size: max } = kernel.config.gateway.cache
  const cache = createReadCache<FetchAnswer>(kernel, { max, weigh: bytesOf })
  const read = async (request: FastifyRequest, reply: FastifyReply, body: object) => {
    const event = isGet(request) ? 'gateway_data' : 'gateway_fetch'
    if (wantsCsv(request)) {
      const file = await fetchCsv(kernel, gatewayCaller(request), { ...body }, event)
      return sendCsv(reply, file)
    }
    const options = { event, cache, fresh: asksForFresh(request.headers['cache-control']) } as const
    const whole = asksToStrip(request) ? withStripNulls({ ...body }) : { ...body }
    const fetched = await fetchRows(kernel, gatewayCaller(request), whole, options)
    return sendFetched(withOutcome(reply, fetched.outcome), fetched)
  }
  const reading = { ...config, produces: ROWS_TYPES }
  for (const url of ['/gateway/fetch', '/gateway/data']) {
    app.route({
      method: 'POST',
      url,
      config: reading,
      schema: {
        operationId: 'fetchRows',
        summary: 'Read rows',
        headers: ReadHeaders,
        body: bodies.FetchBody,
        querystring: InFormat,
        response: { 200: RowsRead },
      },
      handler: (request, reply) => read(request, reply, request.body),
    })
  }
  app.route({
    method: 'GET',
    url: '/data',
    config: reading,
    schema: {
      operationId: 'fetchRowsByValue',
      summary: 'Read rows by the value of one column',
      headers: ReadHeaders,
      querystring: bodies.DataQuery,
      response: { 200: RowsRead },
    },
    handler: (request, reply) => read(request, reply, bodyOf(request.query)),
  })
}

/** The body of a fetch, from the query string of GET /data. */
function bodyOf(query: DataQuery): object {
  const { view, eq_column, eq_value, api_key: _, format: __, ...rest } = query
  return { ...rest, view_name: view, conditions: [{ eq_column, eq_value }] }
}

type DataQuery = Static<Parts['bodies']['DataQuery']>

function countRoute(app: App, { kernel, config, bodies }: Parts): void {
  const cache = createReadCache<number>(kernel, { max: 10_000, weigh: () => 1 })
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
      const options = { cache, fresh: asksForFresh(request.headers['cache-control']) }
      const { count, cacheKey, milliseconds, outcome } = await countRows(
        kernel,
        caller,
        request.body,
        options,
      )
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
}

function insertRoutes(app: App, { kernel, config, bodies }: Parts, { renew }: GatewayAccess): void {
  const { limits } = kernel.config
  const batches = createInsertBatching()
  app.addHook('preClose', batches.close)
  for (const method of ['PUT', 'POST'] as const) {
    app.route({
      method,
      url: '/gateway/insert',
      bodyLimit: limits.body_bulk,
      // Inserts with a window wait this long before they start.
      config: {
        ...config,
        timeout: limits.timeout + limits.insert_window,
        failures: [...FAILURES_OF.data, 'caller_changed'],
      },
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
        const bytes = Number(request.headers['content-length'] ?? limits.body_bulk)
        const result = await insertRows(kernel, caller, request.body, (insert) => {
          if (milliseconds === undefined) return insert.run()
          const renewed = async () => renewedInsert(insert, await renew.again(request, reply))
          return batches.insert(insert, { milliseconds, bytes, renewed })
        })
        return sendWritten(reply, 'insert', result)
      },
    })
  }
}

function updateRoute(app: App, { kernel, config, bodies }: Parts): void {
  app.route({
    method: 'POST',
    url: '/gateway/update',
    bodyLimit: kernel.config.limits.body_bulk,
    config,
    schema: {
      operationId: 'updateRows',
      summary: 'Change the rows that match the conditions',
      body: bodies.UpdateBody,
      response: { 200: RowsWritten },
    },
    handler: async (request, reply) =>
      sendWritten(reply, 'update', await writeRows(kernel, gatewayCaller(request), request.body, 'update')),
  })
}

function deleteRoutes(app: App, { kernel, config, bodies }: Parts): void {
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
        sendWritten(reply, 'delete', await writeRows(kernel, gatewayCaller(request), request.body, 'delete')),
    })
  }
}

function transactionRoute(app: App, { kernel, config, bodies }: Parts, { renew }: GatewayAccess): void {
  app.route({
    method: 'POST',
    url: '/gateway/transaction',
    bodyLimit: kernel.config.limits.body_bulk,
    config: { ...config, failures: [...FAILURES_OF.data, 'caller_changed'] },
    schema: {
      operationId: 'runTransaction',
      summary: 'Run several operations atomically; with an Idempotency-Key only once',
      headers: TransactionHeaders,
      body: bodies.TransactionBody,
      response: { 200: TransactionDone },
    },
    handler: async (request, reply) => {
      const { operations, options = {}, idempotency_key: inBody } = request.body
      const inHeader = request.headers[HEADER.idempotencyKey]
      const keys = [inHeader, inBody].filter((key) => key !== undefined)
      const renewed = () => renew.again(request, reply)
      const transaction = { operations, options, keys, stripNulls: asksToStrip(request), renewed }
      return sendTransaction(reply, await runTransaction(kernel, gatewayCaller(request), transaction))
    },
  })
}

const withOutcome = (reply: FastifyReply, outcome: Outcome): FastifyReply =>
  outcome === undefined ? reply : reply.header(HEADER.cache, outcome)

const asksToStrip = ({ headers }: FastifyRequest): boolean => headers[HEADER.stripNulls] === 'true'
