import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { MailedPurpose } from '#identity/ticket-purposes.ts'
import { Failure } from '#kernel/errors.ts'
import { readForms } from '#kernel/http/bodies/body.ts'
import { sendPage, wantsPage } from '#kernel/http/page.ts'
import { HtmlPage, NOT_EMPTY } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import type { Admission } from '../door/admit.ts'
import { clearSessionToken, noteLoginMethod } from '../door/cookies.ts'
import { finishRedirectedSignIn, finishSignIn } from '../door/finish-sign-in.ts'
import { HOOK_FAILURES, PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { MAIL_FLOWS } from '../mailing/every-flow.ts'
import type { FormValues, LinkPage, MailFlow, OpenLink } from '../mailing/flow.ts'
import { linkClickOf } from '../mailing/link-click.ts'
import { openLink } from '../mailing/links.ts'
import { answerByPages } from '../pages/error-page.ts'
import { CallbackUrl, Password } from '../schemas.ts'
import { badLinkPage, donePage, placeholdersOf, type Sent, viewPage } from './pages.ts'

const Token = Type.String({ maxLength: 256, default: '' })
const callbackURL = CallbackUrl('Where the browser is sent in the end')
const Query = Type.Object({ token: Type.Optional(Token), callbackURL })
const REDIRECTED = {
  type: 'null',
  description: 'Done: to the callbackURL of the form',
  headers: { location: { type: 'string', format: 'uri-reference' } },
}

/** A page, and the flows whose links lead to it. */
type FlowsPage = LinkPage & { readonly flows: readonly MailFlow[] }

/**
 * The pages that mailed links lead to (auth.md 4, "Links"). Opening a page changes nothing, since mail scanners open every link;
 * its button acts.
 */
export function confirmRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  const all: readonly MailFlow[] = Object.values(MAIL_FLOWS)
  const flows = all.filter(({ isEnabled }) => isEnabled?.(kernel.config) ?? true)
  app.register(async (part: App) => {
    readForms(part)
    for (const [page, sharing] of Map.groupBy(flows, ({ page }) => page))
      confirmRoute(part, kernel, access, { ...page, flows: sharing })
    answerByPages(part, kernel)
  })
}

function confirmRoute(app: App, kernel: Kernel, access: AuthAccess, page: FlowsPage): void {
  const { name, summary, fields, withoutSecondFactor = false } = page
  const url = `/confirm/${name}`
  const config = { access: access.known, withoutSecondFactor, redirects: ['callbackURL'] }
  app.route({
    method: 'GET',
    url,
    config: { ...config, failures: ['INVALID_TOKEN', 'TOKEN_EXPIRED'] },
    schema: {
      operationId: `show${pascalCase(name)}`,
      summary: `${summary}: the page of a mailed link`,
      querystring: Query,
      response: { 200: HtmlPage },
    },
    handler: async (request, reply) => {
      const { token = '', callbackURL } = request.query
      const opened = { request, reply, page, sent: { token, callbackURL } }
      return withBadLinkPage(kernel, opened, () => show(kernel, opened))
    },
  })
  app.route({
    method: 'POST',
    url,
    config: { ...config, startsSession: true, limit: 'sign_in', failures: page.failures },
    schema: {
      operationId: `confirm${pascalCase(name)}`,
      summary: `${summary}: the button of that page`,
      body: Type.Object(
        {
          token: Type.Optional(Token),
          callbackURL,
          ...(fields.includes('password') && { password: Type.Optional(Password()) }),
          ...(fields.includes('newPassword') && { newPassword: Type.Optional(Password()) }),
        },
        NOT_EMPTY,
      ),
      consumes: ['application/x-www-form-urlencoded'],
      response: { 200: HtmlPage, 303: REDIRECTED },
    },
    handler: async (request, reply) => {
      const { token = '', callbackURL, ...values } = request.body
      const opened = { request, reply, page, sent: { token, callbackURL } }
      // The schema has these fields only.
      return withBadLinkPage(kernel, opened, () => press(request.kernel, opened, values as FormValues))
    },
  })
}

const pascalCase = (name: string): string =>
  name.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** A request for a page. */
type PageRequest = {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly page: FlowsPage
  readonly sent: Sent
}

async function show(
  kernel: Kernel,
  { request, reply, page, sent }: PageRequest,
  failure?: Failure,
): Promise<FastifyReply> {
  const { link, flow } = await openFlow(kernel, page, sent)
  const view = await flow.view(kernel, link, linkClickOf(kernel, request, reply))
  return sendPage(kernel, reply, viewPage(view, placeholdersOf(link), sent, failure), failure?.status)
}

async function press(kernel: Kernel, opened: PageRequest, values: FormValues): Promise<FastifyReply> {
  const { request, reply, page, sent } = opened
  const { link, flow } = await openFlow(kernel, page, sent)
  try {
    const click = linkClickOf(kernel, request, reply)
    const done = await flow.act(kernel, link, { token: sent.token, click, values })
    if (done.isSignedOut === true) clearSessionToken(kernel.config, reply)
    const { admission, redirectTo = sent.callbackURL } = done
    if (admission !== undefined && flow.loginMethod !== undefined)
      noteLoginMethod(kernel, reply, flow.loginMethod)
    const target = admission === undefined ? redirectTo : finishOnPage(kernel, reply, admission, redirectTo)
    if (target !== undefined) return reply.redirect(target, 303)
    return sendPage(kernel, reply, donePage(done, placeholdersOf(link)))
  } catch (error) {
    if (!(error instanceof Failure) || !TRY_AGAIN.has(error.code) || !wantsPage(request)) throw error
    return show(kernel, opened, error)
  }
}

function finishOnPage(
  kernel: Kernel,
  reply: FastifyReply,
  admission: Admission,
  callbackURL: string | undefined,
): string | undefined {
  if (callbackURL !== undefined) return finishRedirectedSignIn(kernel, reply, admission, callbackURL)
  finishSignIn(kernel, reply, admission)
  return undefined
}

/** Failures that leave the link valid: the form is shown again. */
const TRY_AGAIN: ReadonlySet<string> = new Set([
  'INVALID_PASSWORD',
  'PASSWORD_REQUIRED',
  'PASSWORD_CHANGE_REQUIRED',
  ...PASSWORD_POLICY_FAILURES,
  ...HOOK_FAILURES,
])

type OpenFlow = { readonly link: OpenLink<MailedPurpose>; readonly flow: MailFlow }

async function openFlow(kernel: Kernel, { flows }: FlowsPage, { token }: Sent): Promise<OpenFlow> {
  const purposes = flows.map(({ purpose }) => purpose)
  const link = await openLink(kernel, purposes, token)
  const flow = flows.find(({ purpose }) => purpose === link.ticket.purpose)
  if (flow === undefined) throw new Error(`no flow of ${purposes} has the purpose ${link.ticket.purpose}`)
  return { link, flow }
}

/** Shows a browser a page of explanation when the link does not work any more. */
async function withBadLinkPage(
  kernel: Kernel,
  { request, reply, page, sent }: PageRequest,
  work: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure) || !BAD_LINK.has(error.code) || !wantsPage(request)) throw error
    const isExpired = error.code === 'TOKEN_EXPIRED'
    return sendPage(kernel, reply, badLinkPage(page, isExpired, sent.callbackURL), error.status)
  }
}

const BAD_LINK: ReadonlySet<string> = new Set(['INVALID_TOKEN', 'TOKEN_EXPIRED'])
