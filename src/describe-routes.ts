import type { GatewayParts } from '#gateway/surface.ts'
import type { Config } from '#kernel/config/config.ts'
import type { RouteBook } from '#kernel/http/routes.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createLog } from '#kernel/log.ts'
import { createMetrics } from '#kernel/metrics.ts'
import { addSurfaces } from './app.ts'

/** The routes of a service with this configuration, for their description. Opens no database, and no route can be called. */
export async function describeRoutesOf(
  config: Config,
): Promise<{ readonly app: App; readonly book: RouteBook }> {
  const kernel = new Proxy(
    {
      config,
      metrics: createMetrics(() => new Date(0)),
      log: createLog({ level: 'silent', format: 'json' }),
    },
    { get: (known, name) => Reflect.get(known, name) ?? ABSENT },
  )
  const parts = new Proxy({ adminKey: '' }, { get: (known, name) => Reflect.get(known, name) ?? ABSENT })
  // Routes read their configuration when they are added; all else belongs to requests, which there are none of.
  const { app, book } = addSurfaces(kernel as Kernel, parts as GatewayParts)
  await app.ready()
  return { app, book }
}

/** In the place of every part that needs a running service. It can be called, and has every member. */
const ABSENT: unknown = new Proxy(() => {}, {
  get: (_target, name) => (name === 'then' || typeof name === 'symbol' ? undefined : ABSENT),
  apply: () => ABSENT,
})
