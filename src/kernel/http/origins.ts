import type { IncomingHttpHeaders } from 'node:http'
import type { Kernel } from '../kernel.ts'
import { isGet } from './methods.ts'
import { asksToOperate } from './session-cookie.ts'

/** Origins whose pages may send a user's cookie and be redirect targets. */
export const ownOrigins = (kernel: Kernel): ReadonlySet<string> =>
  new Set([...originsOfService(kernel), ...kernel.config.auth.trusted_origins])

/** Those of the service itself. */
function originsOfService({ config, publicUrl }: Kernel): readonly string[] {
  const ownUrl = new URL(publicUrl())
  const port = ownUrl.port === '' ? '' : `:${ownUrl.port}`
  const loopback = config.production ? [] : [`http://127.0.0.1${port}`, `http://[::1]${port}`]
  return [ownUrl.origin, ...loopback]
}

type OriginVerdict = 'allowed' | 'absent' | 'null' | 'foreign'

/**
 * The origin of a request by Origin, else Sec-Fetch-Site, else Referer (auth.md 11).
 * `absent`: it has none of these headers, so it is not from a browser.
 */
function originOf(headers: IncomingHttpHeaders, allowed: ReadonlySet<string>): OriginVerdict {
  const { origin, referer } = headers
  if (origin === 'null') return 'null'
  if (origin !== undefined) return allowed.has(origin) ? 'allowed' : 'foreign'
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || site === 'none' ? 'allowed' : 'foreign'
  if (referer === undefined) return 'absent'
  const from = URL.parse(referer)
  return from !== null && allowed.has(from.origin) ? 'allowed' : 'foreign'
}

/** Why a request may not use its cookie: it comes from a foreign page, or its origin is unknown. */
export function crossSite(kernel: Kernel, headers: IncomingHttpHeaders): 'foreign' | 'unknown' | undefined {
  const verdict = originOf(headers, ownOrigins(kernel))
  if (verdict === 'allowed' || (verdict === 'absent' && !kernel.config.auth.require_origin)) return undefined
  return verdict === 'foreign' ? 'foreign' : 'unknown'
}

/**
 * The same for a cookie that opens more than the account: the page is of the service itself, not of a trusted origin, and says so. Only GET
 * may lack Origin, since browsers leave it out there.
 */
export function beyondOwnPages(
  kernel: Kernel,
  { headers, method }: { readonly headers: IncomingHttpHeaders; readonly method: string },
): 'foreign' | 'unknown' | undefined {
  const { origin, referer, 'sec-fetch-site': site } = headers
  const isOwn = (url: string | undefined) => url !== undefined && originsOfService(kernel).includes(url)
  if (origin === 'null') return 'unknown'
  if (origin !== undefined) return isOwn(origin) ? undefined : 'foreign'
  if (!isGet({ method })) return 'unknown'
  if (site !== undefined) return site === 'same-origin' ? undefined : 'foreign'
  if (referer === undefined) return 'unknown'
  return isOwn(URL.parse(referer)?.origin) ? undefined : 'foreign'
}

/** Why a request may not use its session cookie. GET changes nothing, and a browser shows its answer to no page of another origin. */
export function beyondReach(
  kernel: Kernel,
  request: { readonly headers: IncomingHttpHeaders; readonly method: string },
): 'foreign' | 'unknown' | undefined {
  if (asksToOperate(request)) return beyondOwnPages(kernel, request)
  return isGet(request) ? undefined : crossSite(kernel, request.headers)
}

/**
 * The normalised redirect target, which may be stored and sent; undefined when it is not allowed.
 * Allowed are a path with one leading slash and a URL of an allowed origin. The URL is parsed against the own origin and
 * checked in its serialised form, because parsing resolves `/.//host`, `/x/..//host` and `/%2e//host` to `//host`,
 * which browsers take for another host.
 */
export function redirectTarget(kernel: Kernel, target: string): string | undefined {
  // Printable ASCII without backslash: a valid URL has percent-encoding and punycode for the rest. `//host` is no path.
  if (target.length > 2_048 || !/^(?!\/\/)[!-[\]-~]+$/.test(target)) return undefined
  const isPath = target.startsWith('/')
  const ownOrigin = new URL(kernel.publicUrl()).origin
  const url = isPath || namesHostAlone(target) ? URL.parse(target, ownOrigin) : null
  if (url === null || !(isPath ? url.origin === ownOrigin : ownOrigins(kernel).has(url.origin)))
    return undefined
  // Proxies may decode a slash again.
  if (/^\/(\/|\\|%2f|%5c)/i.test(url.pathname)) return undefined
  // Also where the settings name the own origin as a trusted one.
  if (originsOfService(kernel).includes(url.origin) && isEndpoint(kernel, url.pathname)) return undefined
  return isPath ? url.href.slice(ownOrigin.length) : url.href
}

/**
 * Endpoints of this surface, except its error page, are no targets. A browser that our own page redirects has our origin, so that a
 * link of an attacker, which must not sign anyone in, would look like one of the own application.
 */
function isEndpoint({ config: { auth } }: Kernel, pathname: string): boolean {
  // Proxies may merge slashes.
  const path = decoded(pathname).replaceAll(/\/+/g, '/')
  return path.startsWith(`${auth.base_path}/`) && path !== `${auth.base_path}/error`
}

/** Decoded like the router does it: an invalid percent sign is taken literally. */
function decoded(pathname: string): string {
  try {
    return decodeURIComponent(pathname)
  } catch {
    return pathname
  }
}

/** Whether it has a scheme, two slashes and an authority without a user. */
function namesHostAlone(target: string): boolean {
  const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(target) ?? []
  return authority !== undefined && !authority.includes('@')
}
