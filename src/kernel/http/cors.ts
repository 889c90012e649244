import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Kernel } from '../kernel.ts'
import { HEADER } from './header-names.ts'

/** Response headers that pages of other origins may read. */
export const EXPOSED_HEADERS = [
  HEADER.authToken,
  HEADER.authJwt,
  HEADER.knownDevice,
  HEADER.cache,
  HEADER.events,
  HEADER.count,
  HEADER.requestId,
  'retry-after',
  HEADER.retryAfter,
]

/** Seconds for which browsers may keep the answer to a preflight. */
export const PREFLIGHT_AGE = 600

/**
 * For a route that has origins of its own (`*`: every one) besides the trusted ones: lets a page of the request's origin read the answer.
 * Only pages of trusted origins may send cookies. False if the origin is not allowed.
 */
export function allowOrigin(
  kernel: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
  origins: readonly string[],
): boolean {
  reply.header('vary', 'Origin')
  const { origin } = request.headers
  if (!isAllowedOrigin(kernel, request, origins)) return false
  reply.header(ALLOWED, origin)
  reply.header('access-control-expose-headers', EXPOSED_HEADERS.join(', '))
  if (origin !== undefined && isTrusted(kernel, origin))
    reply.header('access-control-allow-credentials', 'true')
  return true
}

const ALLOWED = 'access-control-allow-origin'

const isTrusted = ({ config }: Kernel, origin: string): boolean =>
  config.auth.trusted_origins.includes(origin)

const isAllowedOrigin = (
  kernel: Kernel,
  { headers: { origin } }: FastifyRequest,
  origins: readonly string[],
): boolean =>
  origin !== undefined && (isTrusted(kernel, origin) || origins.includes(origin) || origins.includes('*'))

/** Whether a page that was let read the answer may read no more of it. */
export const hasLostOrigin = (
  kernel: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
  origins: readonly string[],
): boolean => reply.hasHeader(ALLOWED) && !isAllowedOrigin(kernel, request, origins)

/** For an answer that does not go through Fastify, and so not through @fastify/cors: a page of a trusted origin may read it. */
export function corsHeaders({ auth }: Config, origin: string | undefined): Readonly<Record<string, string>> {
  if (origin === undefined || !auth.trusted_origins.includes(origin)) return { vary: 'Origin' }
  return {
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': EXPOSED_HEADERS.join(', '),
  }
}

/** Answers a preflight of an allowed origin. */
export function sendPreflight(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  method: string,
): FastifyReply {
  const wanted = headers['access-control-request-headers']
  reply.header('vary', 'Origin, Access-Control-Request-Headers')
  reply.header('access-control-allow-methods', method)
  reply.header('access-control-max-age', PREFLIGHT_AGE)
  if (wanted !== undefined) reply.header('access-control-allow-headers', wanted)
  return reply.code(204).send()
}
