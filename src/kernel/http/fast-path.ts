import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Log } from '../log.ts'
import { JSON_TYPE } from './accept.ts'
import type { App } from './app.ts'
import type { Connections } from './connections/connections.ts'
import { timeToRead } from './connections/long-responses.ts'
import { HEADER } from './header-names.ts'
import { withoutScheme } from './presented-token.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Of a GET: repeats answers before the hooks. */
    fastPath?: FastPath
  }
}

/**
 * A route whose answer to a Bearer token stays the same for a while. The first answer goes through Fastify; later ones are repeated before it,
 * which costs half (decision 69). Only a plain request is answered so (`plainBearer`), and everything else goes on as it would.
 */
export type FastPath = {
  /** Names of the hooks of its surface that have nothing left to do when an answer is repeated. */
  readonly hooks: readonly string[]
  /** The answer that Fastify would give to this token now, from memory. */
  find(token: string): RepeatedAnswer | undefined
}

/** An answer of Fastify with status 200. */
export type RepeatedAnswer = {
  /** Names and values of its headers in turn, with the id of its own request. */
  readonly head: readonly string[]
  readonly body: string
}

type FastPathParts = Pick<Config, 'limits'> & {
  readonly connections: Connections
  readonly log: Log
  newId(): string
  record(request: AnsweredRequest): void
}

/** A request for log and metrics. */
export type AnsweredRequest = {
  readonly id: string
  readonly raw: IncomingMessage
  readonly route: string
  readonly surface: string
  readonly status: number
  readonly milliseconds: number
}

/** The hooks of the server. What they do is done here, is in the headers that are repeated, or concerns no plain request. */
const SERVER_HOOKS = [
  'beginRequest',
  'leaveEndedConnection',
  'endConnection',
  'fastifyCookieHandler',
  'fastifyCookieOnSendHandler',
  'handleCors',
  'judgeAccess',
  'expectAcceptable',
  'recordResponse',
]

/** To be called before any route is added. */
export function addFastPath(app: App, { limits, connections, log, newId, record }: FastPathParts): void {
  const added: RouteOptions[] = []
  const open = new Map<string, { readonly find: FastPath['find']; readonly surface: string }>()
  app.addHook('onRoute', (route) => {
    if (route.method === 'GET' && route.config?.fastPath !== undefined) added.push(route)
  })
  app.addHook('onReady', async () => {
    for (const { url, config: { fastPath, surface = 'gateway' } = {} } of added) {
      if (fastPath === undefined) continue
      const known = [...SERVER_HOOKS, ...fastPath.hooks]
      const hooks = hooksOf(app, url)
      const unknown = hooks.filter((name) => !known.includes(name))
      if (hooks.length > 0 && unknown.length === 0) open.set(url, { find: fastPath.find, surface })
      else
        log.warn(
          { event: 'fast_path_off', route: url, hooks: unknown },
          `${url} has hooks that its fast path does not know`,
        )
    }
  })

  /** A failure is Fastify's to answer: thrown here, it would end the process. */
  function found({ find }: Pick<FastPath, 'find'>, token: string): RepeatedAnswer | undefined {
    try {
      return find(token)
    } catch (error) {
      log.error({ event: 'fast_path_failed', error }, 'a repeated answer could not be found')
      return undefined
    }
  }

  /** False: the request is Fastify's. */
  function repeat(request: IncomingMessage, response: ServerResponse): boolean {
    const { url: route = '', socket } = request
    const path = open.get(route)
    if (path === undefined || !connections.isFree(socket)) return false
    const token = plainBearer(request, limits.header)
    const answer = token === undefined ? undefined : found(path, token)
    if (answer === undefined) return false
    const begun = performance.now()
    const id = newId()
    connections.began(socket)
    response.once('finish', () => {
      const milliseconds = performance.now() - begun
      record({ id, raw: request, route, surface: path.surface, status: 200, milliseconds })
    })
    response.writeHead(200, withId(answer.head, id)).end(answer.body)
    const stop = boundReading(response, socket, limits)
    response.once('close', () => {
      stop()
      connections.ended(socket)
    })
    return true
  }
  app.server.off('request', app.routing).on('request', (request, response) => {
    if (!repeat(request, response)) app.routing(request, response)
  })
}

const NOTHING = (): void => {}

/** As for every answer, its reader has only so much time; there is none who waits when the system has taken it at once. */
function boundReading(
  response: ServerResponse,
  socket: Socket,
  { timeout, min_rate }: FastPathParts['limits'],
): () => void {
  if (socket.writableLength === 0) return NOTHING
  const timer = setTimeout(() => response.destroy(), timeout + timeToRead(min_rate))
  return () => clearTimeout(timer)
}

/** By `slice`, which copies faster than `with`. */
function withId(head: readonly string[], id: string): string[] {
  const own = head.slice()
  own[own.indexOf(HEADER.requestId) + 1] = id
  return own
}

/** The names of the hooks that a GET of this path runs unless it fails, as Fastify prints them. */
function hooksOf(app: App, url: string): readonly string[] {
  const names: string[] = []
  const parts: string[] = []
  let isHere = false
  for (const line of app
    .printRoutes({ method: 'GET', commonPrefix: false, includeHooks: true })
    .split('\n')) {
    const [, indent = '', part] = /^([│ ]*)[├└]── (.*) \(GET\)$/.exec(line) ?? []
    if (part !== undefined) {
      parts.splice(indent.length / INDENT, parts.length, part)
      isHere = parts.join('') === url
    } else if (isHere && !line.includes('(onError)')) names.push(...namesIn(line))
  }
  return names
}

/** Characters in front of a route for each route that is above it. */
const INDENT = 4

/** Of `• (onSend) ["endConnection()","anonymous()"]`. */
const namesIn = (line: string): readonly string[] =>
  /\[.*\]$/.exec(line)?.[0].match(/[^",[\]]+(?=\(\)")/g) ?? []

/** The headers of a plain request. No answer of a fast path depends on another one than Authorization. */
const PLAIN = new Set([
  ...['host', 'connection', 'authorization', 'accept', 'accept-encoding', 'accept-language', 'user-agent'],
  ...[
    'sec-fetch-mode',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-port',
    'x-forwarded-proto',
    'x-real-ip',
  ],
  ...['traceparent', 'tracestate'],
])

/** Values of Accept that include JSON, as clients send them. */
const ACCEPTED = new Set(['*/*', JSON_TYPE, `${JSON_TYPE}, text/plain, */*`])

/**
 * The Bearer token of a request that nothing else is to be judged or read of: a GET by HTTP/1.1 without a body, whose few headers the edge
 * (`requireGoodHeaders`) has nothing against. Undefined for all others.
 */
function plainBearer(
  { method, httpVersion, url = '', rawHeaders }: IncomingMessage,
  limit: number,
): string | undefined {
  if (method !== 'GET' || httpVersion !== '1.1') return undefined
  let size = url.length
  let hosts = 0
  let authorization: string | undefined
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const typed = rawHeaders[at] ?? ''
    const value = rawHeaders[at + 1] ?? ''
    const name = typed.toLowerCase()
    size += typed.length + value.length
    if (!PLAIN.has(name)) return undefined
    if (name === 'host') hosts++
    else if (name === 'connection' && value !== 'keep-alive') return undefined
    else if (name === 'accept' && !ACCEPTED.has(value)) return undefined
    else if (name === 'authorization') {
      if (authorization !== undefined) return undefined
      authorization = value
    }
  }
  return hosts === 1 && size < limit ? withoutScheme(authorization) : undefined
}

/** Characters of a body; a longer one, as with a picture in it, is not kept in memory. */
const MAX_BODY = 4_096
/** An answer with one of these is for its own request alone. */
const SINGLE_USE = ['connection', 'set-cookie']

export type Repeatable = { readonly token: string; readonly answer: RepeatedAnswer }

/** For an `onSend` hook: the answer, if it may be repeated for the token. */
export function repeatable(
  { raw, routeOptions }: FastifyRequest,
  reply: FastifyReply,
  body: unknown,
  limit: number,
): Repeatable | undefined {
  const token = raw.url === routeOptions.url ? plainBearer(raw, limit) : undefined
  if (token === undefined || reply.statusCode !== 200) return undefined
  if (typeof body !== 'string' || body.length > MAX_BODY) return undefined
  const headers = reply.getHeaders()
  if (SINGLE_USE.some((name) => name in headers)) return undefined
  const head = Object.entries(headers).flatMap(([name, value]) => [name, String(value)])
  return { token, answer: { head: [...head, 'content-length', String(Buffer.byteLength(body))], body } }
}
