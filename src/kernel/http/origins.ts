import type { IncomingHttpHeaders } from 'node:http'
import type { Kernel } from '../kernel.ts'

/** Origins whose pages may act with a user's cookie and be redirected to. */
export function ownOrigins({ config, publicUrl }: Kernel): ReadonlySet<string> {
  const own = new URL(publicUrl())
  const port = own.port === '' ? '' : `:${own.port}`
  const loopback = config.production ? [] : [`http://127.0.0.1${port}`, `http://[::1]${port}`]
  return new Set([own.origin, ...config.auth.trusted_origins, ...loopback])
}

export type OriginVerdict = 'allowed' | 'absent' | 'null' | 'foreign'

/**
 * Where a browser says that a request comes from: Origin; without it Sec-Fetch-Site; without it Referer (auth.md 11).
 * `absent`: none of the three, so no browser.
 */
export function originOf(headers: IncomingHttpHeaders, allowed: ReadonlySet<string>): OriginVerdict {
  const { origin, referer } = headers
  if (origin === 'null') return 'null'
  if (origin !== undefined) return allowed.has(origin) ? 'allowed' : 'foreign'
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || site === 'none' ? 'allowed' : 'foreign'
  if (referer === undefined) return 'absent'
  const from = URL.parse(referer)
  return from !== null && allowed.has(from.origin) ? 'allowed' : 'foreign'
}

/** What keeps a request from using the cookie that it carries: it comes from a foreign page, or does not say from where. */
export function crossSite(kernel: Kernel, headers: IncomingHttpHeaders): 'foreign' | 'unknown' | undefined {
  const verdict = originOf(headers, ownOrigins(kernel))
  if (verdict === 'allowed' || (verdict === 'absent' && !kernel.config.auth.require_origin)) return undefined
  return verdict === 'foreign' ? 'foreign' : 'unknown'
}

/**
 * May a request name this as the place to send a browser to? A path with one leading slash, or a URL of an allowed
 * origin. Decided by parsing, and never by comparing prefixes; whatever browsers and servers read differently
 * (backslashes, control characters, encoded slashes, a missing `//`) is refused.
 */
export function isSafeRedirect(target: string, allowed: ReadonlySet<string>): boolean {
  // Printable ASCII only: an address that needs more is percent-encoded and punycoded already.
  if (target.length > 2_048 || !/^[!-[\]-~]+$/.test(target)) return false
  if (target.startsWith('/'))
    return !/^\/(\/|%2f|%5c)/i.test(target) && URL.canParse(target, 'http://own.invalid')
  const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(target) ?? []
  if (authority === undefined || authority.includes('@')) return false
  const url = URL.parse(target)
  return url !== null && allowed.has(url.origin)
}
