import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '#kernel/errors.ts'
import { html } from '#kernel/html.ts'
import { type Page, sendPage, wantsPage } from '#kernel/http/page.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { AUTH_CODES, REDIRECT_CODES } from '../errors.ts'
import { pageText } from './texts.ts'

/** Shows known codes only, so that a link cannot put text of its own on the page. */
export function errorPage(error: string | undefined): Page {
  const code = error?.toUpperCase() ?? ''
  const known = [AUTH_CODES, REDIRECT_CODES].find((codes) => Object.hasOwn(codes, code))?.[code]
  return {
    title: pageText('failedTitle'),
    content: [
      ...(known === undefined ? [] : [html`<p>${known[1]}.</p>`]),
      html`<p>${pageText('failedText')}</p>`,
      ...(known === undefined ? [] : [html`<p><code>${code}</code></p>`]),
    ],
  }
}

/** From now on a browser gets a page about each failure of these routes. */
export function answerByPages(app: App, kernel: Kernel): void {
  app.setErrorHandler((error, request, reply) => {
    if (!(error instanceof Failure) || !wantsPage(request)) throw error
    if (error.headers !== undefined) reply.headers(error.headers)
    return sendPage(kernel, reply, errorPage(error.code), error.status)
  })
}

/** Sends the page of the work, and a browser one about its failure; undefined leaves that to the routes' own handler. */
export const createPageSender =
  (kernel: Kernel, failurePage: (failure: Failure) => Page | undefined) =>
  async (request: FastifyRequest, reply: FastifyReply, work: () => Promise<Page>): Promise<FastifyReply> => {
    try {
      return sendPage(kernel, reply, await work())
    } catch (error) {
      const page = error instanceof Failure && wantsPage(request) ? failurePage(error) : undefined
      if (!(error instanceof Failure) || page === undefined) throw error
      return sendPage(kernel, reply, page, error.status)
    }
  }
