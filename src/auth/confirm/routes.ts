import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Failure } from '#kernel/errors.ts'
import { readForms } from '#kernel/http/body.ts'
import { sendPage, wantsPage } from '#kernel/http/page.ts'
import { HtmlPage } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../access.ts'
import { clearToken } from '../cookies.ts'
import type { Filled } from '../email/first-proof.ts'
import { clickOf } from '../email/link-click.ts'
import { finishSignIn } from '../finish-sign-in.ts'
import { openLink } from '../mail-tickets.ts'
import { errorPage } from '../pages/error-page.ts'
import { CallbackUrl, Password } from '../schemas.ts'
import { CONFIRM_FLOWS, type ConfirmFlow } from './flows.ts'
import { badLinkPage, donePage, namedIn, type Sent, viewPage } from './pages.ts'

const Token = Type.String({ maxLength: 256, default: '' })
const callbackURL = CallbackUrl('Where the browser is sent in the end')
const Query = Type.Object({ token: Type.Optional(Token), callbackURL })
const REDIRECTED = {
  type: 'null',
  description: 'Done: to the place that the form names',
  headers: { location: { type: 'string', format: 'uri-reference' } },
}

/**
 * The pages that links of mails lead to (auth.md 4, "Links"). Opening one changes nothing, since mail scanners open every
 * link; its button does.
 */
export function confirmRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.register(async (pages: App) => {
    readForms(pages)
    for (const [name, flow] of Object.entries(CONFIRM_FLOWS)) confirmRoute(pages, kernel, access, name, flow)
    pages.setErrorHandler((error, request, reply) => {
      if (!(error instanceof Failure) || !wantsPage(request)) throw error
      if (error.headers !== undefined) reply.headers(error.headers)
      return sendPage(kernel, reply, errorPage(error.code), error.status)
    })
  })
}

function confirmRoute(app: App, kernel: Kernel, access: AuthAccess, name: string, flow: ConfirmFlow): void {
  const url = `/confirm/${name}`
  const { id, summary } = flow.operation
  const config = { access: access.known, redirects: ['callbackURL'] }
  app.route({
    method: 'GET',
    url,
    config: { ...config, failures: ['INVALID_TOKEN', 'TOKEN_EXPIRED'] },
    schema: {
      operationId: `show${id}`,
      summary: `${summary}: the page of a mailed link`,
      querystring: Query,
      response: { 200: HtmlPage },
    },
    handler: async (request, reply) => {
      const { token = '', callbackURL } = request.query
      return explained(kernel, request, reply, { flow, callbackURL }, () =>
        show(kernel, request, reply, flow, { token, callbackURL }),
      )
    },
  })
  app.route({
    method: 'POST',
    url,
    config: { ...config, startsSession: true, limit: 'sign_in', failures: flow.failures },
    schema: {
      operationId: `confirm${id}`,
      summary: `${summary}: the button of that page`,
      body: Type.Object({
        token: Type.Optional(Token),
        callbackURL,
        ...(flow.fields.includes('password') && { password: Type.Optional(Password()) }),
        ...(flow.fields.includes('newPassword') && { newPassword: Type.Optional(Password()) }),
      }),
      consumes: ['application/x-www-form-urlencoded'],
      response: { 200: HtmlPage, 303: REDIRECTED },
    },
    handler: async (request, reply) => {
      const { token = '', callbackURL, ...fields } = request.body
      const filled = fields as Filled // by the schema
      return explained(kernel, request, reply, { flow, callbackURL }, async () => {
        const link = await openLink(kernel, flow.purposes, token)
        try {
          const pressed = { token, click: clickOf(kernel, request, reply), filled }
          const done = await flow.press(kernel, link, pressed)
          if (done.isGone === true) clearToken(kernel.config, reply)
          if (done.followed?.admission !== undefined) finishSignIn(kernel, reply, done.followed.admission)
          if (callbackURL !== undefined) return reply.redirect(callbackURL, 303)
          return sendPage(kernel, reply, donePage(done, namedIn(link)))
        } catch (error) {
          if (!(error instanceof Failure) || !TRY_AGAIN.has(error.code) || !wantsPage(request)) throw error
          return show(kernel, request, reply, flow, { token, callbackURL }, error)
        }
      })
    },
  })
}

/** Failures after which the link is as good as before, and the form is shown again. */
const TRY_AGAIN: ReadonlySet<string> = new Set([
  'INVALID_PASSWORD',
  'PASSWORD_REQUIRED',
  'PASSWORD_TOO_SHORT',
  'PASSWORD_TOO_LONG',
  'PASSWORD_COMMON',
  'PASSWORD_CHANGE_REQUIRED',
])

async function show(
  kernel: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
  flow: ConfirmFlow,
  sent: Sent,
  failure?: Failure,
): Promise<FastifyReply> {
  const link = await openLink(kernel, flow.purposes, sent.token)
  const view = await flow.view(kernel, link, clickOf(kernel, request, reply))
  return sendPage(kernel, reply, viewPage(view, namedIn(link), sent, failure), failure?.status)
}

/** A link that is of no use any more gets a page that says what to do. */
async function explained(
  kernel: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
  { flow, callbackURL }: { readonly flow: ConfirmFlow; readonly callbackURL: string | undefined },
  work: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure) || !BAD_LINK.has(error.code) || !wantsPage(request)) throw error
    return sendPage(
      kernel,
      reply,
      badLinkPage(flow, error.code === 'TOKEN_EXPIRED', callbackURL),
      error.status,
    )
  }
}

const BAD_LINK: ReadonlySet<string> = new Set(['INVALID_TOKEN', 'TOKEN_EXPIRED'])
