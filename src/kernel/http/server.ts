import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import cookie from '@fastify/cookie'
import cors from '@fastify/cors'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import type { Kernel } from '../kernel.ts'
import { uuidv7 } from '../random.ts'
import { edge } from './failures.ts'
import type { App } from './surface.ts'
import { HEADER } from './words.ts'

/**
 * The server without routes: limits, request ids, security headers, CORS for trusted origins, access before the body,
 * one log line and one measurement a request.
 */
export function createServer(kernel: Kernel): App {
  const { config } = kernel
  const app = fastify({
    logger: false,
    bodyLimit: config.limits.body,
    handlerTimeout: config.limits.timeout,
    requestTimeout: config.limits.timeout,
    keepAliveTimeout: 65_000,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 512 },
    exposeHeadRoutes: false,
    trustProxy: config.server.trusted_proxies.length > 0 ? [...config.server.trusted_proxies] : false,
    http: { maxHeaderSize: config.limits.header },
    genReqId: (raw) => sanePresented(raw) ?? uuidv7(kernel.now(), kernel.random),
    clientErrorHandler: answerBrokenRequest,
  }).withTypeProvider<TypeBoxTypeProvider>()

  app.addHook('onRequest', async (request, reply) => {
    reply.headers(SECURITY_HEADERS)
    reply.header(HEADER.requestId, request.id)
  })
  app.register(cookie, { hook: 'onRequest' })
  app.register(cors, corsOptions(kernel))
  app.addHook('onRequest', async (request, reply) =>
    request.routeOptions.config.access?.authorize(request, reply),
  )
  app.addHook('onResponse', recordRequest(kernel))
  return app
}

/** The caller's own request id, if it is a sane token that can stand in a log. */
function sanePresented(raw: IncomingMessage): string | undefined {
  const presented = raw.headers[HEADER.requestId]
  return typeof presented === 'string' && /^[\w.:-]{1,128}$/.test(presented) ? presented : undefined
}

/** JSON answers are never framed, sniffed, cached or run as a page. Pages of our own replace the policy. */
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
}

const corsOptions = (kernel: Kernel) => ({
  origin: (origin: string | undefined, decide: (error: null, allowed: boolean) => void) =>
    decide(null, origin !== undefined && kernel.config.auth.trusted_origins.includes(origin)),
  credentials: true,
  methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
  exposedHeaders: [HEADER.authToken, HEADER.requestId, 'retry-after', 'x-retry-after'],
  maxAge: 600,
})

function recordRequest({ config, metrics, log }: Kernel) {
  const wanted = config.log.requests
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { url: route = 'unknown', config: routeConfig } = request.routeOptions
    const { surface = 'gateway' } = routeConfig
    const { statusCode: status, elapsedTime } = reply
    metrics.request({ surface, route, method: request.method, status, seconds: elapsedTime / 1_000 })
    const isProblem = status >= 500 || elapsedTime > SLOW
    if (wanted === 'all' || (wanted === 'problems' && isProblem)) {
      // The route's pattern and not the path: a path can carry a one-time token.
      const facts = {
        event: 'request',
        request_id: request.id,
        surface,
        method: request.method,
        route,
        status,
      }
      log.info(
        { ...facts, duration_ms: Math.round(elapsedTime * 10) / 10 },
        `${request.method} ${route} ${status}`,
      )
    }
  }
}

/** A request this slow is worth a line, milliseconds. */
const SLOW = 1_000

/** Requests that are no HTTP, or whose headers are too large, never reach a route; they get the envelope all the same. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (socket.destroyed || !socket.writable) return
  const failure = error.code === 'HPE_HEADER_OVERFLOW' ? edge('headers_too_large') : edge('validation_error')
  const { status, code, message } = failure
  const body = JSON.stringify({ status: 'error', message, error: message, code })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}
