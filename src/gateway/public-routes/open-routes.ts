import type { Scope } from '#databases/request/request.ts'
import { createCoherentCache } from '#kernel/db/coherent-cache.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { scopeOf } from './definition.ts'
import { findRoute, type PublicRoute } from './store.ts'

/** A route with its fixed parts, which are read from the record once. */
export type OpenRoute = { readonly record: PublicRoute; readonly scope: Scope }

/**
 * Undefined for an unknown key, which is not cached, so that a new route needs no announcement. How many keys an address can try is limited:
 * beyond the limit, 429 without a query. Without an address, it is that of a caller who was let in by the route, and guesses nothing.
 */
export type FindRoute = (routeKey: string, address?: string) => Promise<OpenRoute | undefined>

const KEY_FORM = /^[a-z0-9][a-z0-9-]{0,62}$/

export function createOpenRoutes(kernel: Kernel): FindRoute {
  const cache = createCoherentCache<OpenRoute>({
    coherence: kernel.coherence,
    max: 10_000,
    load: async (routeKey) => {
      const record = await findRoute(kernel.db, routeKey)
      return record && { record, scope: scopeOf(kernel, record) }
    },
    tags: ({ record }) => [`public_route:${record.id}`],
  })
  return async (routeKey, address) => {
    const cached = cache.peek(routeKey)
    if (cached !== undefined) return cached
    if (address !== undefined) await kernel.limits.expectRoom('default', address)
    const found = KEY_FORM.test(routeKey) ? await cache.get(routeKey) : undefined
    if (found === undefined && address !== undefined) await kernel.limits.consume('default', address)
    return found
  }
}
