import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import cookie from '@fastify/cookie'
import cors from '@fastify/cors'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import type { Kernel } from '../kernel.ts'
import { drawInAdvance, uuidv7 } from '../random.ts'
import { addClientAddresses } from './client-address.ts'
import { budgetBodies } from './collect-body.ts'
import { endConnections, isArriving } from './early-answers.ts'
import { edge } from './failures.ts'
import { HEADER } from './header-names.ts'
import { headerProblem } from './headers.ts'
import { addLongResponses, timeToRead } from './long-responses.ts'
import type { App } from './surface.ts'

/**
 * The server without routes: limits, request ids, security headers, CORS for trusted origins, access before the body,
 * one log line and one measurement a request.
 */
export function createServer(kernel: Kernel): App {
  const { config, now } = kernel
  const random = drawInAdvance(kernel.random)
  const newId = () => uuidv7(now(), random)
  const app = fastify({
    logger: false,
    bodyLimit: config.limits.body,
    // The timer of the request comes first and answers in the envelope of its surface; this ends what has got around it.
    requestTimeout: 2 * config.limits.timeout,
    keepAliveTimeout: 65_000,
    forceCloseConnections: 'idle',
    // What still comes on an open connection while the service drains is answered as ever, then the connection ends.
    return503OnClosing: false,
    rewriteUrl: ({ url = '/' }) => decodable(url),
    // The header limit bounds the path; what a parameter may be, its schema says.
    routerOptions: { maxParamLength: config.limits.header },
    exposeHeadRoutes: true,
    // Node would refuse a missing Host with an empty body; see the hook below.
    http: {
      maxHeaderSize: config.limits.header,
      requireHostHeader: false,
      ...headerTimes(config.limits.timeout),
    },
    genReqId: (raw) => sanePresented(raw) ?? newId(),
    clientErrorHandler: brokenRequestAnswer(newId),
  }).withTypeProvider<TypeBoxTypeProvider>()
  // Node would answer an Expect that it does not know with 417 and an empty body. RFC 9110 section 10.1.1: it may be ignored.
  app.server.on('checkExpectation', (request, response) => app.routing(request, response))

  const headers = config.server.public_url?.startsWith('https:')
    ? { ...SECURITY_HEADERS, ...HTTPS_ONLY }
    : SECURITY_HEADERS
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(headers)
    reply.header(HEADER.requestId, request.id)
    const timeout = request.routeOptions.config.timeout ?? config.limits.timeout
    const stop = limitTime(reply, timeout, config.limits.min_rate)
    reply.raw.once('close', () => {
      stop()
      request.bodyHold?.release()
    })
    done(headerProblem(request.raw))
  })
  endConnections(app)
  addClientAddresses(app, config.server.trusted_proxies)
  app.register(cookie, { hook: 'onRequest' })
  app.register(cors, corsOptions(kernel))
  app.addHook('onRequest', async (request, reply) => {
    const { access, limit } = request.routeOptions.config
    // Access may cost a query, which an address that has used up its limit is not worth.
    if (limit !== undefined) await kernel.limits.expectRoom(limit, request.clientAddress)
    await access?.authorize(request, reply)
  })
  addLongResponses(app, kernel)
  budgetBodies(app, kernel)
  app.addHook('onResponse', recordRequest(kernel))
  return app
}

/** For Node's own check of slow requests, whose headers have to be there in `timeout` milliseconds. */
const headerTimes = (timeout: number) => ({
  headersTimeout: timeout,
  requestTimeout: 2 * timeout,
  connectionsCheckingInterval: Math.min(5_000, timeout),
})

/**
 * 504 when nothing was said in time, 408 when that is because the body is not there yet, unless what is returned is called before. A body that is on its way is bounded by what its reader takes (`limits.min_rate`). Fastify's own `handlerTimeout` ends with the request stream's `close`, and that is as
 * soon as a body has been read (5.12.8); besides, its AbortController costs a twentieth of a request.
 */
function limitTime(reply: FastifyReply, timeout: number, rate: number): () => void {
  let timer = setTimeout(() => {
    if (reply.isPaced) return
    if (reply.sent) timer = setTimeout(() => reply.raw.destroy(), timeToRead(rate))
    // What is on its way already cannot become another answer.
    else if (reply.raw.headersSent) reply.raw.destroy()
    else {
      // What still comes of the body has no answer of its own.
      reply.request.stopBody?.()
      reply.send(edge(isArriving(reply.request.raw) ? 'request_timeout' : 'timeout'))
    }
  }, timeout)
  return () => clearTimeout(timer)
}

/** A percent sign that begins no character stands for itself, so that every address reaches its surface. */
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

/** The caller's own request id, if it is a sane token that can stand in a log. */
function sanePresented(raw: IncomingMessage): string | undefined {
  const presented = raw.headers[HEADER.requestId]
  return typeof presented === 'string' && /^[\w.:-]{1,128}$/.test(presented) ? presented : undefined
}

/** Where the service is reached by https, a browser is to use nothing else for a year (RFC 6797). */
const HTTPS_ONLY = { 'strict-transport-security': 'max-age=31536000' }

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
  // A preflight that asks for nothing is answered like any other, not with a text of the library's.
  strictPreflight: false,
  methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
  exposedHeaders: [HEADER.authToken, HEADER.cache, HEADER.requestId, 'retry-after', 'x-retry-after'],
  maxAge: 600,
})

function recordRequest({ config, metrics, log }: Kernel) {
  const wanted = config.log.requests
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
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
    done()
  }
}

/** A request this slow is worth a line, milliseconds. */
const SLOW = 1_000

const BROKEN: Readonly<Record<string, 'headers_too_large' | 'request_timeout'>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/**
 * Requests that are no HTTP, or whose headers are too large or too slow, never reach a route and so belong to no surface: they get
 * the gateway's envelope, which has all that the other one has.
 */
const brokenRequestAnswer = (newId: () => string) => (error: NodeJS.ErrnoException, socket: Socket) => {
  if (socket.destroyed || !socket.writable) return
  // An answer has begun, and no second one may follow into it. The field is Node's own, and its own handler looks at it too.
  const { _httpMessage: answer } = socket as { _httpMessage?: ServerResponse | null }
  if (answer?.headersSent === true) return void socket.destroy()
  const failure = edge(BROKEN[error.code ?? ''] ?? 'validation_error')
  const { status, code, message } = failure
  const id = newId()
  const body = JSON.stringify({ status: 'error', message, error: message, code, request_id: id })
  const headers = {
    ...SECURITY_HEADERS,
    [HEADER.requestId]: id,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
}
