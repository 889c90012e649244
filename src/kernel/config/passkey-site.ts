import { isIP } from 'node:net'
import type { Config } from './config.ts'

/** The site that passkeys are made for (auth.md 8). */
export type PasskeySite = {
  /** A domain: passkeys work on its pages and on those of its subdomains. */
  readonly rpId: string
  /** Origins of the pages and applications that may ask for a passkey. */
  readonly origins: readonly string[]
}

export function passkeySite({ auth: { passkey } }: Pick<Config, 'auth'>, publicUrl: string): PasskeySite {
  const { hostname, origin } = new URL(publicUrl)
  const { rp_id: rpId = hostname, origins } = passkey
  return { rpId, origins: origins.length === 0 ? [origin] : origins }
}

/** Browsers make no passkeys for an IP address. */
export const isDomain = (rpId: string): boolean => isIP(rpId.replace(/^\[|\]$/g, '')) === 0

/** How browsers judge an origin: an app's is not judged by its host. */
export function originFault(rpId: string, origin: string): 'elsewhere' | 'insecure' | undefined {
  const { protocol, hostname } = new URL(origin)
  if (protocol === 'android:') return undefined
  if (hostname !== rpId && !hostname.endsWith(`.${rpId}`)) return 'elsewhere'
  const isSecure = protocol === 'https:' || hostname === 'localhost' || hostname.endsWith('.localhost')
  return isSecure ? undefined : 'insecure'
}

/** Whether a browser or an app can use passkeys at all. */
export const isUsableSite = ({ rpId, origins }: PasskeySite): boolean =>
  isDomain(rpId) && origins.some((origin) => originFault(rpId, origin) === undefined)
