import type { IncomingHttpHeaders } from 'node:http'

/** The token of the Authorization header (RFC 6750), for keys and sessions alike. Whatever follows the word counts as presented. */
export const bearerOf = ({ headers }: { readonly headers: IncomingHttpHeaders }): string | undefined =>
  withoutScheme(headers.authorization)

/** The token of a header that may also be written like Authorization: with the word Bearer, or without it. */
export const tokenOf = (value: string | readonly string[] | undefined): string | undefined => {
  const text = typeof value === 'string' ? value.trim() : ''
  return withoutScheme(text) ?? (text === '' ? undefined : text)
}

/** Without a regular expression: it runs for each request. */
function withoutScheme(value = ''): string | undefined {
  const [scheme, separator] = [value.slice(0, SCHEME.length), value[SCHEME.length]]
  const isBearer = scheme.toLowerCase() === SCHEME && (separator === ' ' || separator === '\t')
  return isBearer ? value.slice(SCHEME.length).trim() || undefined : undefined
}

const SCHEME = 'bearer'
