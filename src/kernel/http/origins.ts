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
 * The place to send a browser to, in the one form that may be stored and sent; undefined when a request may not name it.
 * Allowed are a path with one leading slash and a URL of an allowed origin. The URL is parsed against the own origin and
 * judged as it is written out again, because parsing resolves `/.//host`, `/x/..//host` and `/%2e//host` to `//host`,
 * which a browser takes for another host.
 */
export function redirectTarget(kernel: Kernel, target: string): string | undefined {
  // Printable ASCII without a backslash: a URL that needs more is percent-encoded and punycoded already. `//host` is no path.
  if (target.length > 2_048 || !/^(?!\/\/)[!-[\]-~]+$/.test(target)) return undefined
  const isPath = target.startsWith('/')
  const own = new URL(kernel.publicUrl()).origin
  const url = isPath || namesHostAlone(target) ? URL.parse(target, own) : null
  if (url === null || !(isPath ? url.origin === own : ownOrigins(kernel).has(url.origin))) return undefined
  // Proxies in front of an app may decode a slash once more.
  if (/^\/(\/|\\|%2f|%5c)/i.test(url.pathname)) return undefined
  if (!kernel.config.auth.trusted_origins.includes(url.origin) && isEndpoint(kernel, url.pathname))
    return undefined
  return isPath ? url.href.slice(own.length) : url.href
}

/**
 * Of this surface, but for its error page. A browser that our own page sends there comes from the own origin, so a link of a
 * stranger's, which must not sign anyone in, would look like the own application's.
 */
function isEndpoint({ config: { auth } }: Kernel, pathname: string): boolean {
  const path = decoded(pathname)
  return path.startsWith(`${auth.base_path}/`) && path !== `${auth.base_path}/error`
}

/** As the router reads it: a percent sign that begins no character stands for itself. */
function decoded(pathname: string): string {
  try {
    return decodeURIComponent(pathname)
  } catch {
    return pathname
  }
}

/** Scheme, two slashes and an authority without a user. */
function namesHostAlone(target: string): boolean {
  const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(target) ?? []
  return authority !== undefined && !authority.includes('@')
}
