import { Type } from 'typebox'
import { open } from '#kernel/http/access.ts'
import { HtmlPage } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import { AUTH_CODES } from './errors.ts'

/** Liveness, and the page that browsers are sent to when something failed. */
export function pageRoutes(app: App): void {
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
    handler: async ({ query }, reply) => {
      reply.header(
        'content-security-policy',
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
      )
      return reply.type('text/html; charset=utf-8').send(page(query.error))
    },
  })
}

/** Only codes of ours are shown: the page never repeats what a link made up. */
function page(error: string | undefined): string {
  const code = error?.toUpperCase() ?? ''
  const known = Object.hasOwn(AUTH_CODES, code) ? AUTH_CODES[code] : undefined
  const says = known?.[1] ?? 'Something went wrong'
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Error</title>
<style>body { font: 18px/1.5 system-ui, sans-serif; max-width: 30em; margin: 20vh auto; padding: 0 1em; color: #222 } code { color: #777 }</style>
<h1>${says}</h1>
<p>Go back and try again. If it happens once more, tell whoever runs this service.</p>
${known === undefined ? '' : `<p><code>${code}</code></p>`}
</html>
`
}
