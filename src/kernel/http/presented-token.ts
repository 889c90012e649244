import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import { sessionCookieName } from './session-cookie.ts'

export type PresentedToken = { readonly token: string; readonly by: 'header' | 'cookie' }

/** The session token of a request, for both halves. A header wins over the cookie, which pages of other sites can make a browser send. */
export function presentedToken(
  config: Config,
  request: FastifyRequest,
  inHeader: (request: FastifyRequest) => string | undefined = bearerOf,
): PresentedToken | undefined {
  const given = inHeader(request)
  if (given !== undefined) return { token: given, by: 'header' }
  const token = request.cookies[sessionCookieName(config, request)]
  return token === undefined || token === '' ? undefined : { token, by: 'cookie' }
}

/** The token of the Authorization header (RFC 6750), for keys and sessions alike. Whatever follows the word counts as presented. */
export const bearerOf = ({ headers }: { readonly headers: IncomingHttpHeaders }): string | undefined =>
  withoutScheme(headers.authorization)

/** The token of a header that may also be written like Authorization: with the word Bearer, or without it. */
export const tokenOf = (value: string | readonly string[] | undefined): string | undefined => {
  const text = typeof value === 'string' ? value.trim() : ''
  return withoutScheme(text) ?? (text === '' ? undefined : text)
}

/** The token behind the word Bearer. Without a regular expression: it runs for each request. */
export function withoutScheme(value = ''): string | undefined {
  const [scheme, separator] = [value.slice(0, SCHEME.length), value[SCHEME.length]]
  const isBearer = scheme.toLowerCase() === SCHEME && (separator === ' ' || separator === '\t')
  return isBearer ? value.slice(SCHEME.length).trim() || undefined : undefined
}

const SCHEME = 'bearer'
