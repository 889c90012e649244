import { type BlockList, isIP, type Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { createBlockList } from '../config/addresses.ts'
import type { App } from './surface.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Normalised address of the caller, for limits, sessions and audit. Fastify's `ip` is that of the proxy. */
    readonly clientAddress: string
  }
}

/** Adds `clientAddress` to every request. */
export function addClientAddresses(app: App, trustedProxies: readonly string[]): void {
  const trusted = createBlockList(trustedProxies)
  const isTrusted = (address: string): boolean => isInside(trusted, address)
  const peerOf = createPeers(trustedProxies)
  const peers = new WeakMap<Socket, Peer>()
  app.decorateRequest('clientAddress', {
    getter(this: FastifyRequest) {
      const { socket, headers } = this.raw
      let peer = peers.get(socket)
      if (peer === undefined) {
        peer = peerOf(socket)
        // A closed socket has no address any more.
        if (!socket.destroyed) peers.set(socket, peer)
      }
      return peer.isProxy ? addressBehind(peer.address, headers['x-forwarded-for'], isTrusted) : peer.address
    },
  })
}

/** False for a connection that was reset before it was accepted. */
export const hasAddress = ({ remoteAddress }: Socket): boolean => remoteAddress !== undefined

/** The other end of a connection: a caller, or a trusted proxy. */
type Peer = { readonly address: string; readonly isProxy: boolean }

export function createPeers(trustedProxies: readonly string[]): (socket: Socket) => Peer {
  const trusted = createBlockList(trustedProxies)
  return (socket) => {
    const address = peerAddress(socket)
    return { address, isProxy: isInside(trusted, address) }
  }
}

const peerAddress = ({ remoteAddress = '' }: Socket): string =>
  canonicalAddress(remoteAddress.replace(/%.*$/, '')) ?? UNKNOWN

/**
 * The rightmost hop of X-Forwarded-For that is not a trusted proxy. A hop that is not an address ends the walk at the proxy that reported
 * it: the caller could have invented all hops to the left of it.
 */
function addressBehind(
  proxy: string,
  forwarded: string | string[] | undefined,
  isTrusted: (address: string) => boolean,
): string {
  let client = proxy
  const hops = String(forwarded ?? '').split(',')
  while (hops.length > 0 && isTrusted(client)) {
    const hop = addressOfHop(hops.pop() ?? '')
    if (hop === undefined) break
    client = hop
  }
  return client
}

/** A closed socket has no remote address. */
const UNKNOWN = '0.0.0.0'

const isInside = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')

/** `192.0.2.1`, `192.0.2.1:50000`, `2001:db8::1` or `[2001:db8::1]:50000`; undefined for anything else. */
export function addressOfHop(text: string): string | undefined {
  const hop = text.trim()
  const [, v4, v6] = /^(?:([\d.]+):\d{1,5}|\[([\da-f.]*:[\da-f:.]*)\](?::\d{1,5})?)$/i.exec(hop) ?? []
  return canonicalAddress(v4 ?? v6 ?? hop)
}

/** The only spelling of an address: IPv6 by RFC 5952, an IPv4-mapped IPv6 address as IPv4. Undefined with a zone (`%eth0`). */
function canonicalAddress(text: string): string | undefined {
  if (text.length > MAX_LENGTH || text.includes('%')) return undefined
  const family = isIP(text)
  if (family === 4) return text
  if (family === 0) return undefined
  const v6 = new URL(`http://[${text}]`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(v6) ?? []
  return high === undefined || low === undefined ? v6 : [...octetsOf(high), ...octetsOf(low)].join('.')
}

/** `0000:0000:0000:0000:0000:ffff:255.255.255.255`. */
const MAX_LENGTH = 45

const octetsOf = (group: string): readonly number[] => {
  const bits = Number.parseInt(group, 16)
  return [bits >> 8, bits & 0xff]
}
