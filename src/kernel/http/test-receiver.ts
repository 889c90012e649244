import type { Config } from '../config/config.ts'
import type { Kernel } from '../kernel.ts'

/**
 * Whether the service receives webhooks of its own, so that one sees them without a server: in development, where callers on this machine reach
 * it, and one process alone has the list.
 */
export const hasTestReceiver = ({ production, server }: Config): boolean =>
  !production && server.workers === 1 && addressOf(server.host) !== undefined

/**
 * The only address on this machine that webhooks reach without `outbound.allow_networks`, in the normal form of URLs, which has no port 80.
 * Undefined: there is no such receiver.
 */
export const testReceiverUrl = ({ config, port }: Pick<Kernel, 'config' | 'port'>): string | undefined =>
  hasTestReceiver(config)
    ? new URL(`http://${addressOf(config.server.host)}:${port()}${TEST_RECEIVER}`).href
    : undefined

export const TEST_RECEIVER = '/dev/webhooks'

/** The loopback address at which a listener of this host answers; undefined for others. */
function addressOf(host: string): string | undefined {
  if (['127.0.0.1', 'localhost', '0.0.0.0', '::'].includes(host)) return '127.0.0.1'
  return host === '::1' ? '[::1]' : undefined
}
