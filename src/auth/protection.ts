import type { FastifyRequest, RouteOptions } from 'fastify'
import { isGet } from '#kernel/http/methods.ts'
import { crossSite, redirectTarget } from '#kernel/http/origins.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { presentedToken } from './cookies.ts'
import { fail, REFUSED_ENTRY } from './errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route can start a session, so a page of a foreign origin may never call it, cookie or not. */
    startsSession?: boolean
  }
}

/** What holds for every route of the surface (auth.md 11): where requests may come from, how many, and where they may lead. */
export function protect(app: App, kernel: Kernel): void {
  app.addHook('onRoute', (route) => {
    const failures = [...(route.config?.failures ?? []), ...refusalsOf(route)]
    route.config = { ...route.config, failures }
  })
  app.addHook('onRequest', async (request) => {
    checkOrigin(kernel, request)
    const { limit } = request.routeOptions.config
    if (limit !== undefined) await kernel.limits.consume(limit, request.clientAddress)
    // Reads by a valid credential are not counted; whoever guesses credentials is.
    else if (!isGet(request) || request.caller === undefined)
      await kernel.limits.consume('default', request.clientAddress)
  })
  app.addHook('preHandler', async ({ query, body, routeOptions }) => {
    const { redirects = [] } = routeOptions.config
    for (const part of [query, body]) judgeRedirects(kernel, redirects, part)
  })
}

/** What is refused here, for the API reference. */
function refusalsOf({ method, config }: RouteOptions): readonly string[] {
  const { redirects = [], startsSession = false } = config ?? {}
  return [
    ...(startsSession ? REFUSED_ENTRY : []),
    ...(method === 'GET' ? [] : ['INVALID_ORIGIN', 'MISSING_OR_NULL_ORIGIN']),
    ...(redirects.length > 0 ? ['INVALID_CALLBACK_URL'] : []),
    'TOO_MANY_REQUESTS',
  ]
}

/** Puts each redirect target in the form that was judged, so that handlers store and send nothing else. */
function judgeRedirects(kernel: Kernel, names: readonly string[], part: unknown): void {
  if (typeof part !== 'object' || part === null) return
  const given = part as Record<string, unknown> // a parsed query or body
  for (const name of names) {
    if (given[name] === undefined || given[name] === null) continue
    const judged = typeof given[name] === 'string' ? redirectTarget(kernel, given[name]) : undefined
    if (judged === undefined)
      throw fail('INVALID_CALLBACK_URL', { message: `${name} must be a path or a URL of a trusted origin` })
    given[name] = judged
  }
}

function checkOrigin(kernel: Kernel, request: FastifyRequest): void {
  if (isGet(request)) return
  const from = crossSite(kernel, request.headers)
  if (from === undefined) return
  const byCookie = presentedToken(kernel.config, request)?.by === 'cookie'
  const startsSession =
    request.routeOptions.config.startsSession === true && request.headers.origin !== undefined
  if (!byCookie && !startsSession) return
  throw fail(from === 'foreign' ? 'INVALID_ORIGIN' : 'MISSING_OR_NULL_ORIGIN')
}
