import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Feature } from '#kernel/http/document/operations.ts'
import { edge } from '#kernel/http/failures.ts'
import { ownHost, thisMachine } from '#kernel/http/own-host.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { loadAssets } from './assets.ts'
import { consolePages } from './page.ts'

export const CONSOLE: Feature = { name: 'Console', description: 'The service in a browser' }

/** The page at all addresses of the console, and the files that it loads. They hold nothing of the installation. */
export function consoleRoutes(app: App, kernel: Kernel): void {
  const assets = loadAssets()
  const pageAt = consolePages(kernel.config, assets)
  const access = ownHost(kernel)
  const sendPage = async ({ url }: Pick<FastifyRequest, 'url'>, reply: FastifyReply) => {
    const { headers, text } = pageAt(url)
    return reply.headers(headers).type('text/html; charset=utf-8').send(text)
  }
  app.route({ method: 'GET', url: '/console', config: { access }, handler: sendPage })
  app.route({ method: 'GET', url: '/console/*', config: { access }, handler: sendPage })
  app.route({
    method: 'GET',
    url: '/console/first-admin',
    config: { access: thisMachine(kernel) },
    handler: sendPage,
  })
  app.route({
    method: 'GET',
    url: '/console/assets/*',
    config: { access },
    handler: async ({ url, headers }, reply) => {
      const name = url.startsWith(`${assets.base}/`) ? url.slice(assets.base.length + 1) : ''
      const found = await assets.read(name, [headers['accept-encoding']].flat().join(','))
      // A page of another version of the service asks for its own files.
      if (found === undefined)
        throw edge('not_found', { hint: 'Reload the page: the service has been updated' })
      reply.headers({ 'cache-control': 'public, max-age=31536000, immutable', vary: 'Accept-Encoding' })
      if (found.encoding !== undefined) reply.header('content-encoding', found.encoding)
      return reply.type(found.type).send(found.bytes)
    },
  })
}
