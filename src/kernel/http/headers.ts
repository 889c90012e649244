import type { IncomingMessage } from 'node:http'
import type { Failure } from '../errors.ts'
import { edge } from './failures.ts'

/** Why a request is refused for its headers; undefined when they are fine. */
export function headerProblem({ rawHeaders, headers, httpVersion }: IncomingMessage): Failure | undefined {
  // RFC 9112 section 3.2.
  if (headers.host === undefined && httpVersion === '1.1')
    return edge('validation_error', { message: 'The header Host is missing' })
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = singleName(rawHeaders[at] ?? '')
    if (name !== undefined && rawHeaders[at + 1] !== headers[name])
      return edge('validation_error', { message: `The header ${name} is given twice with different values` })
    // RFC 9112 section 3.2 allows no second one with the same value either.
    if (name === 'host' && ++hosts > 1)
      return edge('validation_error', { message: 'The header host is given twice' })
  }
  return undefined
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
