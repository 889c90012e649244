import { Type } from 'typebox'
import type { Failure } from '#kernel/errors.ts'
import { html } from '#kernel/html.ts'
import { readForms } from '#kernel/http/bodies/body.ts'
import type { Page } from '#kernel/http/page.ts'
import { HtmlPage, NOT_EMPTY } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess, Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { createPageSender, errorPage } from '../pages/error-page.ts'
import { pageText, type TextName } from '../pages/texts.ts'
import type { InvitationView } from './invitation-store.ts'
import { acceptInvitation, getInvitation } from './invitations.ts'
import { InvitationId } from './schemas.ts'

const URL = '/confirm/invitation'
const Asked = Type.Object({ id: Type.Optional(InvitationId) })

/**
 * The page that an invitation's mail leads to. Without a session of the recipient, it shows neither the organization nor the address,
 * also with the secret of the mail.
 */
export function invitationPage(app: App, kernel: Kernel, access: AuthAccess): void {
  app.register(async (part: App) => {
    readForms(part)
    const send = createPageSender(kernel, failurePage)
    const config = { access: access.known, failures: ['UNAUTHORIZED', ...FAILURES] }
    part.route({
      method: 'GET',
      url: URL,
      config,
      schema: {
        operationId: 'showInvitation',
        summary: 'Accept an invitation: the page of a mailed link',
        querystring: Asked,
        response: { 200: HtmlPage },
      },
      handler: async (request, reply) =>
        send(request, reply, () => show(kernel, request.knownCaller, request.query.id)),
    })
    part.route({
      method: 'POST',
      url: URL,
      config: { ...config, failures: [...config.failures, 'TWO_FACTOR_REQUIRED'] },
      schema: {
        operationId: 'confirmInvitation',
        summary: 'Accept an invitation: the button of that page',
        body: Type.Object(Asked.properties, NOT_EMPTY),
        consumes: ['application/x-www-form-urlencoded'],
        response: { 200: HtmlPage },
      },
      handler: async (request, reply) =>
        send(request, reply, () => accept(request.kernel, request.knownCaller, request.body.id)),
    })
  })
}

/** Failures of accepting an invitation. */
const FAILURES = [
  'INVITATION_NOT_FOUND',
  'EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION',
  'EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION',
  'USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION',
  'ORGANIZATION_MEMBERSHIP_LIMIT_REACHED',
]

async function show(kernel: Kernel, caller: Caller | undefined, id = ''): Promise<Page> {
  const invitation = await invitationTo(kernel, caller, id)
  const form = html`<form method="post">
<input type="hidden" name="id" value="${id}">
<button>${pageText('invitationButton')}</button>
</form>`
  return {
    title: pageText('invitationTitle'),
    content: [paragraph('invitationText', invitation), form],
    form: { leadsTo: undefined },
  }
}

async function accept(kernel: Kernel, caller: Caller | undefined, id = ''): Promise<Page> {
  const invitation = await invitationTo(kernel, caller, id)
  // `invitationTo` has thrown without a caller.
  await acceptInvitation(kernel, caller as Caller, id)
  return { title: pageText('invitationDone'), content: [paragraph('invitationDoneText', invitation)] }
}

/** The invitation, if it is the caller's. */
async function invitationTo(kernel: Kernel, caller: Caller | undefined, id: string): Promise<InvitationView> {
  if (caller === undefined) throw fail('UNAUTHORIZED')
  const invitation = await getInvitation(kernel, caller, id)
  if (invitation.email !== caller.user.email) throw fail('INVITATION_NOT_FOUND')
  return invitation
}

const paragraph = (name: TextName, { email, role, organizationName, inviterEmail }: InvitationView) => {
  const inviter = inviterEmail ?? pageText('someone')
  return html`<p>${pageText(name, { email, role, organization: organizationName, inviter })}</p>`
}

const failurePage = ({ code }: Failure): Page => (NEEDS_SIGN_IN.has(code) ? signInPage() : errorPage(code))

const NEEDS_SIGN_IN: ReadonlySet<string> = new Set([
  'UNAUTHORIZED',
  'INVITATION_NOT_FOUND',
  'EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION',
])

const signInPage = (): Page => ({
  title: pageText('invitationTitle'),
  content: [html`<p>${pageText('invitationSignInText')}</p>`, html`<p>${pageText('invitationGoneText')}</p>`],
})
