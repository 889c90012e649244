import type { IncomingMessage } from 'node:http'
import { edge } from './failures.ts'

/** Throws when the headers and the URL together have `limit` characters or more, or when headers contradict each other. */
export function requireGoodHeaders(
  { url = '', rawHeaders, headers, httpVersion }: IncomingMessage,
  limit: number,
): void {
  // RFC 9112 section 3.2.
  if (headers.host === undefined && httpVersion === '1.1')
    throw edge('validation_error', { message: 'The header Host is missing' })
  let hosts = 0
  let size = url.length
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const typed = rawHeaders[at] ?? ''
    const value = rawHeaders[at + 1] ?? ''
    size += typed.length + value.length
    const name = singleName(typed)
    if (name !== undefined && value !== headers[name])
      throw edge('validation_error', { message: `The header ${name} is given twice with different values` })
    // RFC 9112 section 3.2 allows no second one with the same value either.
    if (name === 'host' && ++hosts > 1)
      throw edge('validation_error', { message: 'The header host is given twice' })
  }
  if (size >= limit) throw edge('headers_too_large')
}

/**
 * Headers of which Node keeps the first and drops the rest, while a proxy may have checked the last. Keyed by their
 * lengths, which differ: this runs for each header of each request.
 */
const SINGLE: Readonly<Record<number, string>> = Object.fromEntries(
  ['host', 'referer', 'content-type', 'authorization'].map((name) => [name.length, name]),
)

function singleName(typed: string): string | undefined {
  const name = SINGLE[typed.length]
  return name !== undefined && typed.toLowerCase() === name ? name : undefined
}
