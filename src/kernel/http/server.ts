import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import cookie from '@fastify/cookie'
import cors from '@fastify/cors'
import SerializerSelector from '@fastify/fast-json-stringify-compiler'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { type FastifyReply } from 'fastify'
import type { Kernel } from '../kernel.ts'
import { drawInAdvance, uuidv7 } from '../random.ts'
import { auditHints } from './audit-hints.ts'
import { budgetBodies } from './bodies/collect-body.ts'
import { addClientAddresses } from './client-address.ts'
import { answerBrokenRequest, answerConnect } from './connections/broken-requests.ts'
import { addConnections } from './connections/connections.ts'
import { endConnections, isArriving } from './connections/early-answers.ts'
import { addLongResponses, timeToRead } from './connections/long-responses.ts'
import { EXPOSED_HEADERS, PREFLIGHT_AGE } from './cors.ts'
import { edge } from './failures.ts'
import { type AnsweredRequest, addFastPath } from './fast-path.ts'
import { HEADER } from './header-names.ts'
import { requireGoodHeaders } from './headers.ts'
import { keepRouteBook, type RouteBook } from './routes.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import type { App } from './surface.ts'

/**
 * The server without routes: limits, request ids, security headers, CORS for trusted origins, access before the body,
 * one log line and one measurement a request.
 */
export function createServer(kernel: Kernel): { readonly app: App; readonly book: RouteBook } {
  const { config, now } = kernel
  const random = drawInAdvance(kernel.random)
  const newId = () => uuidv7(now(), random)
  const app = fastify({
    logger: false,
    bodyLimit: config.limits.body,
    // The timer of the request fires first and answers in the envelope of its surface; this is for requests without a route. An import
    // arrives for as long as it takes.
    requestTimeout: 2 * longest(config),
    keepAliveTimeout: 65_000,
    forceCloseConnections: 'idle',
    // While the service drains, requests on open connections are answered, and then the connection ends.
    return503OnClosing: false,
    rewriteUrl: ({ url = '/' }) => decodable(url),
    // The header limit bounds the path, and the schemas bound parameters.
    routerOptions: { maxParamLength: config.limits.header },
    exposeHeadRoutes: true,
    schemaController: { compilersFactory: { buildSerializer } },
    // Node would refuse a missing Host with an empty body; `requireGoodHeaders` refuses it.
    http: {
      // Above the limit, so that a request that is only somewhat too large still reaches its route, which refuses it.
      maxHeaderSize: 2 * config.limits.header,
      requireHostHeader: false,
      ...headerTimes(config),
    },
    genReqId: (raw) => sanePresented(raw) ?? newId(),
    clientErrorHandler: answerBrokenRequest(kernel, newId, (request) => book.routeOf(request)),
  }).withTypeProvider<TypeBoxTypeProvider>()
  const book = keepRouteBook(app)
  // Node would answer an unknown Expect with 417 and an empty body. It may be ignored (RFC 9110 section 10.1.1).
  app.server.on('checkExpectation', (request, response) => app.routing(request, response))
  app.server.on('connect', (_request, socket: Socket) => answerConnect(socket, newId()))

  const connections = addConnections(app, config)
  const headers = config.server.public_url?.startsWith('https:')
    ? { ...SECURITY_HEADERS, ...HTTPS_ONLY }
    : SECURITY_HEADERS
  app.addHook('onRequest', function beginRequest(request, reply, done) {
    reply.headers(headers)
    reply.header(HEADER.requestId, request.id)
    const timeout = request.routeOptions.config.timeout ?? config.limits.timeout
    const stop = limitTime(reply, timeout, config.limits.min_rate)
    const { socket } = request.raw
    const refusal = connections.began(socket)
    reply.raw.once('close', () => {
      stop()
      request.bodyHold?.release()
      connections.ended(socket)
    })
    done(refusal)
  })
  endConnections(app, connections)
  addClientAddresses(app, config.server.trusted_proxies)
  app.register(cookie, { hook: 'onRequest' })
  app.register(cors, corsOptions(kernel))
  app.addHook('onRequest', async function judgeAccess(request, reply) {
    // After CORS, so that pages of trusted origins can read the failure.
    requireGoodHeaders(request.raw, config.limits.header)
    const { access, limit } = request.routeOptions.config
    // Access may cost a query, which an address beyond its limit does not get.
    if (limit !== undefined) await kernel.limits.expectRoom(limit, request.clientAddress)
    await access?.authorize(request, reply)
  })
  addLongResponses(app, kernel)
  budgetBodies(app, kernel)
  const record = createRecorder(kernel)
  app.addHook('onResponse', function recordResponse({ id, raw, routeOptions }, reply, done) {
    const { url: route = 'unknown', config: ofRoute } = routeOptions
    const { surface = 'gateway' } = ofRoute
    const { statusCode: status, elapsedTime: milliseconds } = reply
    record({ id, raw, route, surface, status, milliseconds })
    done()
  })
  addFastPath(app, { ...kernel.config, log: kernel.log, connections, newId, record })
  return { app, book }
}

/** The first answer compiles its serializer: a start would spend its time on hundreds of schemas. */
const buildSerializer: SerializerSelector.SerializerFactory = (...given) => {
  const compile = SerializerSelector()(...given)
  return (route) => {
    let serialize: ReturnType<typeof compile> | undefined
    return (data) => {
      serialize ??= compile(route)
      return serialize(data)
    }
  }
}

/** For Node's own check of slow requests: headers have to arrive within `limits.timeout`. */
const headerTimes = (config: Kernel['config']) => ({
  headersTimeout: config.limits.timeout,
  requestTimeout: 2 * longest(config),
  connectionsCheckingInterval: Math.min(5_000, config.limits.timeout),
})

const longest = ({ limits: { timeout, import_time } }: Kernel['config']): number =>
  Math.max(timeout, import_time)

/**
 * Answers 504 at the timeout, or 408 when the request's body is still incomplete, unless the returned function is called before. An
 * answer that is being sent is bounded by the rate of its reader (`limits.min_rate`). Fastify's own `handlerTimeout` ends with the
 * `close` of the request stream, which comes as soon as a body has been read (5.12.8); besides, its AbortController costs a
 * twentieth of a request.
 */
function limitTime(reply: FastifyReply, timeout: number, rate: number): () => void {
  let timer = setTimeout(() => {
    if (reply.isPaced) return
    if (reply.sent) timer = setTimeout(() => reply.raw.destroy(), timeToRead(rate))
    // An answer that has begun cannot be replaced.
    else if (reply.raw.headersSent) reply.raw.destroy()
    else {
      // The rest of the body must not cause a second answer.
      reply.request.stopBody?.()
      reply.send(edge(isArriving(reply.request.raw) ? 'request_timeout' : 'timeout'))
    }
  }, timeout)
  return () => clearTimeout(timer)
}

/** Takes an invalid percent sign literally, so that every path reaches its surface. */
function decodable(url: string): string {
  if (!url.includes('%')) return url
  const [path = '', ...query] = url.split('?')
  try {
    decodeURIComponent(path)
    return url
  } catch {
    return [path.replaceAll('%', '%25'), ...query].join('?')
  }
}

/** The caller's own request id, if it is a short token that is safe in a log. */
function sanePresented(raw: IncomingMessage): string | undefined {
  const presented = raw.headers[HEADER.requestId]
  return typeof presented === 'string' && /^[\w.:-]{1,128}$/.test(presented) ? presented : undefined
}

/** With https, browsers use nothing else for a year (RFC 6797). */
const HTTPS_ONLY = { 'strict-transport-security': 'max-age=31536000' }

const corsOptions = (kernel: Kernel) => ({
  origin: (origin: string | undefined, decide: (error: null, allowed: boolean) => void) =>
    decide(null, origin !== undefined && kernel.config.auth.trusted_origins.includes(origin)),
  credentials: true,
  // Without this, the library answers preflights without a method with its own text.
  strictPreflight: false,
  methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
  exposedHeaders: EXPOSED_HEADERS,
  maxAge: PREFLIGHT_AGE,
})

/** Writes one measurement a request, and one log line. */
function createRecorder({ config, metrics, log }: Kernel) {
  const wanted = config.log.requests
  return ({ id, raw, route, surface, status, milliseconds }: AnsweredRequest): void => {
    const { method = '', headers } = raw
    metrics.request({ surface, route, method, status, seconds: milliseconds / 1_000 })
    const isProblem = status >= 500 || milliseconds > SLOW
    if (wanted === 'all' || (wanted === 'problems' && isProblem)) {
      // The route's pattern and not the path: a path can carry a one-time token.
      const facts = {
        event: 'request',
        request_id: id,
        surface,
        method,
        route,
        status,
        ...auditHints(headers),
      }
      log.info({ ...facts, duration_ms: Math.round(milliseconds * 10) / 10 }, `${method} ${route} ${status}`)
    }
  }
}

/** Slower requests are logged, milliseconds. */
const SLOW = 1_000
