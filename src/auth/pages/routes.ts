import { Type } from 'typebox'
import { open } from '#kernel/http/access.ts'
import { sendPage } from '#kernel/http/page.ts'
import { HtmlPage } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { errorPage } from './error-page.ts'

/** Liveness, and the page that browsers are sent to after a failure. */
export function pageRoutes(app: App, kernel: Kernel): void {
  app.route({
    method: 'GET',
    url: '/ok',
    config: { access: open },
    schema: {
      operationId: 'isAuthAlive',
      summary: 'Is the surface alive?',
      response: { 200: Type.Object({ ok: Type.Boolean() }) },
    },
    handler: async () => ({ ok: true }),
  })
  app.route({
    method: 'GET',
    url: '/error',
    config: { access: open },
    schema: {
      operationId: 'showError',
      summary: 'Error page',
      querystring: Type.Object({ error: Type.Optional(Type.String()) }),
      response: { 200: HtmlPage },
    },
    handler: async ({ query }, reply) => sendPage(kernel, reply, errorPage(query.error)),
  })
}
