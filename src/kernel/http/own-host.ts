import type { FastifyRequest } from 'fastify'
import type { Kernel } from '../kernel.ts'
import type { Access } from './access.ts'
import { edge } from './failures.ts'

/**
 * Open to browsers that name the service's own host: that of `server.public_url`, localhost or a loopback address. A page whose name
 * leads here only after it was loaded (DNS rebinding) sends its own name, and reads nothing.
 */
export const ownHost = (kernel: Kernel): Access => ({
  name: 'open (own host)',
  security: [],
  failures: ['misdirected_request'],
  authorize: (request) => expectOwnHost(kernel, request),
})

/** The same for callers on this machine, by an address of it. A forwarded request comes from elsewhere. */
export const thisMachine = (kernel: Kernel): Access => ({
  name: 'open (callers on this machine)',
  security: [],
  failures: ['misdirected_request'],
  authorize(request) {
    expectOwnHost(kernel, request)
    const { headers, clientAddress } = request
    const isForwarded = Object.keys(headers).some(isOfProxies)
    // Also a trusted origin, whose pages may read other answers.
    const isOfOtherPage =
      headers.origin !== undefined && URL.parse(headers.origin)?.host !== headers.host?.toLowerCase()
    if (isForwarded || isOfOtherPage || !isLoopback(clientAddress)) throw edge('misdirected_request')
  },
})

/** Not every proxy tells the address of its caller. A caller who adds one of these only shuts itself out. */
const OF_PROXIES: ReadonlySet<string> = new Set(['forwarded', 'via', 'x-real-ip', 'cf-connecting-ip'])
const isOfProxies = (name: string): boolean => OF_PROXIES.has(name) || name.startsWith('x-forwarded-')

/** The same for callers on this machine of whom the access says more. */
export const onThisMachine = (kernel: Kernel, access: Access): Access => {
  const { authorize, failures = [] } = thisMachine(kernel)
  return {
    ...access,
    name: `${access.name}, callers on this machine`,
    failures: [...(access.failures ?? []), ...failures],
    async authorize(request, reply) {
      await authorize(request, reply)
      await access.authorize(request, reply)
    },
  }
}

function expectOwnHost(kernel: Kernel, { headers, originalUrl }: FastifyRequest): void {
  const host = headers.host?.toLowerCase() ?? ''
  const target = authorityOf(originalUrl)
  if (isOwnHost(kernel, host) && (target === undefined || target === host)) return
  throw edge('misdirected_request', {
    message: `This page answers only at ${kernel.publicUrl()}, at localhost and at loopback addresses`,
    hint: 'Open it there, or set server.public_url (SERVICE_SERVER__PUBLIC_URL) to the address that browsers use',
  })
}

/** The host of a request target in absolute form, which counts in place of Host (RFC 9112 section 3.2.2). Undefined for a path. */
const authorityOf = (target: string): string | undefined =>
  target.startsWith('/') ? undefined : (/^https?:\/\/([^/?#]*)/i.exec(target)?.[1]?.toLowerCase() ?? '')

const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1'

/** Whether it names the host of `server.public_url`, localhost or a loopback address. */
function isOwnHost({ publicUrl }: Kernel, host: string): boolean {
  const [, name, port = '0'] = HOST.exec(host) ?? []
  if (name === undefined || Number(port) > 65_535) return false
  return (
    name === new URL(publicUrl()).hostname ||
    name === 'localhost' ||
    name === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(name)
  )
}

/** Exactly host or host:port. Parsers of URLs take more, and read other names in it. */
const HOST = /^(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/
