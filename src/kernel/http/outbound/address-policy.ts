import { type BlockList, isIP } from 'node:net'
import { createBlockList } from '../../config/addresses.ts'

/**
 * IPv4 networks that the service never calls for a caller: the IANA special-purpose registry (RFC 6890), multicast, and
 * metadata services at public addresses.
 */
const PRIVATE_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10', // carrier-grade NAT; Alibaba's metadata service
  '127.0.0.0/8',
  '168.63.129.16/32', // Azure's WireServer
  '169.254.0.0/16', // link-local; the metadata service of most clouds
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]

/** IPv6: only global unicast, and embedded IPv4 addresses, mapped or of NAT64 (RFC 6052). */
const GLOBAL_V6 = ['2000::/3', '::ffff:0:0/96', '64:ff9b::/96']

/** Parts of these that are not global: protocol assignments with Teredo, documentation, 6to4. */
const PRIVATE_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

/** The IPv6 network of `10.0.0.0/8` embedded after a prefix of 96 bits. */
const embedded = (prefix: string, network: string): string => {
  const [address, bits] = network.split('/')
  return `${prefix}${address}/${96 + Number(bits)}`
}

/** Decides whether a request for a caller may be sent to an address. `allowed`: exceptions (outbound.allow_networks). */
export function createAddressPolicy(allowed: readonly string[]): (address: string) => boolean {
  const exceptions = createBlockList(allowed)
  const global = createBlockList(GLOBAL_V6)
  const closed = createBlockList([
    ...PRIVATE_V4,
    ...PRIVATE_V6,
    ...PRIVATE_V4.flatMap((network) => [embedded('::ffff:', network), embedded('64:ff9b::', network)]),
  ])
  const has = (list: BlockList, address: string) => list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
  return (address) => {
    // A zone (fe80::1%eth0) names a local interface; public addresses have none.
    if (isIP(address) === 0 || address.includes('%')) return false
    if (has(exceptions, address)) return true
    return (isIP(address) === 4 || has(global, address)) && !has(closed, address)
  }
}
