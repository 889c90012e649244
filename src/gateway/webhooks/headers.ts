import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import type { Webhook } from './store.ts'

type Headers = Readonly<Record<string, string>>

/** Headers to send with each delivery, sealed for their webhook; null for none. Throws when one is not possible. */
export function sealHeaders({ secrets }: Pick<Kernel, 'secrets'>, id: string, given: Headers): string | null {
  const headers = acceptableHeaders(given)
  return headers === undefined ? null : secrets.seal('webhook-headers', JSON.stringify(headers), id)
}

/** By names in lower case, so that those of a delivery replace them. Undefined when they were sealed under another SERVICE_SECRET. */
export function openHeaders(
  { secrets }: Pick<Kernel, 'secrets'>,
  { id, sealedHeaders }: Pick<Webhook, 'id' | 'sealedHeaders'>,
): Headers | undefined {
  const json = sealedHeaders === null ? '{}' : secrets.open('webhook-headers', sealedHeaders, id)
  return json === undefined ? undefined : inLowerCase(JSON.parse(json))
}

const inLowerCase = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

function acceptableHeaders(given: Headers): Headers | undefined {
  const headers = Object.entries(given).map(([name, value]) => [name.toLowerCase(), value] as const)
  for (const [name, value] of headers) {
    if (!NAME.test(name)) throw refused(name, 'is not the name of a header')
    if (isReserved(name)) throw refused(name, 'is set by the service')
    if (!VALUE.test(value)) throw refused(name, 'has a value that is not visible ASCII')
  }
  if (new Set(headers.map(([name]) => name)).size < headers.length)
    throw fail('invalid_webhook', { message: 'headers has a name twice', details: { field: 'headers' } })
  const size = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (size > MAX_BYTES)
    throw fail('invalid_webhook', {
      message: `headers have more than ${MAX_BYTES} bytes`,
      details: { field: 'headers' },
    })
  return headers.length === 0 ? undefined : Object.fromEntries(headers)
}

/** Headers that deliveries set by themselves, or that belong to the connection (RFC 9110, section 7.6.1). */
const RESERVED = new Set([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
  'accept-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'user-agent',
])

const isReserved = (name: string): boolean => RESERVED.has(name) || name.startsWith('webhook-')

/** A token (RFC 9110, section 5.6.2). */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$/
/** Visible ASCII, and spaces inside. No line break: it would begin another header. */
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/
/** Bytes of all names and values. */
const MAX_BYTES = 8_192

const refused = (name: string, why: string) =>
  fail('invalid_webhook', {
    message: `The header ${JSON.stringify(name.slice(0, 100))} ${why}`,
    details: { field: 'headers' },
  })
