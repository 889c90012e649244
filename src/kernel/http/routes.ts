import type { FastifyInstance, RouteOptions } from 'fastify'
import { isGet } from './methods.ts'

type RouteEntry = {
  readonly method: string
  readonly path: string
  readonly access: string
  readonly surface: string
  /** Members of body or query that name a redirect target. */
  readonly redirects: readonly string[]
}

/** Every route of the running service: for 405, the access table and the conformance list. */
export type RouteBook = {
  entries(): readonly RouteEntry[]
  /** Methods of the routes at a path; empty when there are none. A route with exactly this path hides those with parameters. */
  methodsAt(url: string): readonly string[]
  /** Whether a route has exactly this path, so that it is no value of a parameter. */
  isFixed(url: string): boolean
  /** For a request that Fastify never sees. */
  routeOf(request: { readonly method: string; readonly url: string }): RouteOptions | undefined
}

/** To be called before any route is added. Throws for a route without access. */
export function keepRouteBook(app: FastifyInstance): RouteBook {
  const routes: RouteOptions[] = []
  const patterns: { pattern: RegExp; method: string; route: RouteOptions }[] = []
  const fixed = new Map<string, string[]>()
  app.addHook('onRoute', (route: RouteOptions) => {
    for (const method of [route.method].flat()) {
      if (method === 'OPTIONS' || method === 'HEAD') continue
      if (route.config?.access === undefined) {
        throw new Error(`${method} ${route.url} does not say who may call it (config.access)`)
      }
      patterns.push({ method, pattern: patternOf(route.url), route })
      if (!/[:*]/.test(route.url)) fixed.set(route.url, [...(fixed.get(route.url) ?? []), method])
    }
    routes.push(route)
  })
  return {
    entries: () => routes.flatMap(entriesOf),
    methodsAt(url) {
      const path = pathOf(url)
      const methods =
        fixed.get(path) ?? patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
      return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))]
    },
    isFixed: (url) => fixed.has(pathOf(url)),
    routeOf(request) {
      const path = pathOf(request.url)
      const method = isGet(request) ? 'GET' : request.method
      const found = patterns.filter((one) => one.method === method && one.pattern.test(path))
      return (found.find(({ route }) => route.url === path) ?? found[0])?.route
    },
  }
}

const pathOf = (url: string): string => url.split('?', 1)[0] ?? ''

function entriesOf({ method, url, config }: RouteOptions): RouteEntry[] {
  const { access, surface = 'gateway', redirects = [] } = config ?? {}
  const path = url.replace(/:(\w+)/g, '{$1}')
  return [method]
    .flat()
    .filter((verb) => verb !== 'OPTIONS' && verb !== 'HEAD')
    .map((verb) => ({ method: verb, path, access: access?.name ?? '', surface, redirects }))
}

const patternOf = (url: string): RegExp =>
  new RegExp(
    `^${url
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/:\w+/g, '[^/]+')
      .replace(/\*/g, '.*')}$`,
  )
