import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

/** The address of a storage server, given as a URL or as a host with or without a port, as it will be used. */
export function endpointOf({ outbound }: Pick<Kernel, 'outbound'>, given: string): string {
  const url = URL.parse(/^[a-z][a-z\d+.-]*:\/\//i.test(given) ? given : `https://${given}`)
  if (url === null || url.search !== '' || url.hash !== '' || hasDotSegment(given))
    throw refusedEndpoint('Give a URL like https://s3.eu-central-1.amazonaws.com, or a host')
  const reason = outbound.refusal(url.href)
  if (reason !== undefined) throw refusedEndpoint(`It is not used: ${reason}`)
  return url.href.replace(/\/$/, '')
}

export const refusedEndpoint = (hint: string, cause?: unknown) => fail('invalid_endpoint', { hint, cause })

/** A URL with such a key would be normalised to that of another object, or of another bucket. */
export function requireUsableKey(key: string): void {
  if (hasDotSegment(key)) throw fail('invalid_object_key', { hint: 'No part between slashes may be . or ..' })
}

const hasDotSegment = (path: string): boolean =>
  path.split(/[/\\]/).some((part) => /^(?:\.|%2e){1,2}$/i.test(part))
