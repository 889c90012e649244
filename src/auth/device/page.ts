import { Type } from 'typebox'
import type { Failure } from '#kernel/errors.ts'
import { type Html, html } from '#kernel/html.ts'
import { readForms } from '#kernel/http/bodies/body.ts'
import { edge } from '#kernel/http/failures.ts'
import type { Page } from '#kernel/http/page.ts'
import { HtmlPage, OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess, Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { answerByPages, createPageSender } from '../pages/error-page.ts'
import { pageText, type TextName } from '../pages/texts.ts'
import { approveDevice, denyDevice, viewDevice } from './device.ts'
import { ANSWER_FAILURES, UserCode } from './schemas.ts'

const URL = '/confirm/device'
const DECISIONS = ['approve', 'deny'] as const
const Shown = Type.String({ maxLength: 64, description: 'Id of the user whom the page has shown' })

/**
 * The page on which a user enters the code of a device. Opening it changes nothing, also with the code in its address; its buttons act. It
 * shows the code again, so that a user who was sent here by somebody else sees what device it is about (RFC 8628, 5.4).
 */
export function devicePage(app: App, kernel: Kernel, access: AuthAccess): void {
  app.register(async (part: App) => {
    readForms(part)
    const send = createPageSender(kernel, failurePage)
    answerByPages(part, kernel)
    const config = { access: access.known, limit: 'user_code' } as const
    part.route({
      method: 'GET',
      url: URL,
      config: { ...config, failures: ['UNAUTHORIZED', ...ANSWER_FAILURES] },
      schema: {
        operationId: 'showDevice',
        summary: 'Enter the code of a device: a page',
        querystring: Type.Object({ user_code: Type.Optional(UserCode) }),
        response: { 200: HtmlPage },
      },
      handler: async (request, reply) =>
        send(request, reply, () => show(kernel, request.knownCaller, request.query.user_code)),
    })
    part.route({
      method: 'POST',
      url: URL,
      config: {
        ...config,
        failures: [...Object.keys(SIGN_IN_TEXTS), 'TWO_FACTOR_REQUIRED', ...ANSWER_FAILURES],
      },
      schema: {
        operationId: 'confirmDevice',
        summary: 'Approve or refuse a device: the buttons of that page',
        body: Type.Object({ user_code: UserCode, decision: OneOf(DECISIONS), user: Type.Optional(Shown) }),
        consumes: ['application/x-www-form-urlencoded'],
        response: { 200: HtmlPage },
      },
      handler: async (request, reply) =>
        send(request, reply, () => decide(request.kernel, request.knownCaller, request.body)),
    })
  })
}

async function show(kernel: Kernel, caller: Caller | undefined, typed = ''): Promise<Page> {
  if (caller === undefined) throw fail('UNAUTHORIZED')
  if (typed.trim() === '') return entryPage()
  const { userCode, client } = await viewDevice(kernel, caller, typed)
  if (client === undefined) throw fail('DEVICE_CODE_ALREADY_PROCESSED')
  const values = { client: client.name, email: caller.user.email }
  const button = (
    decision: (typeof DECISIONS)[number],
    text: TextName,
    style?: Html,
  ) => html`<form method="post">
<input type="hidden" name="user_code" value="${userCode}">
<input type="hidden" name="decision" value="${decision}">
<input type="hidden" name="user" value="${caller.user.id}">
<button${style}>${pageText(text)}</button>
</form>`
  return {
    title: pageText('deviceTitle'),
    content: [
      html`<p>${pageText('deviceText', values)}</p>`,
      html`<p><code>${userCode}</code></p>`,
      html`<p>${pageText('deviceWarning', values)}</p>`,
      button('approve', 'deviceApproveButton'),
      button('deny', 'deviceDenyButton', html` class="soft"`),
    ],
    form: { leadsTo: undefined },
  }
}

type Pressed = {
  readonly user_code: string
  readonly decision: (typeof DECISIONS)[number]
  readonly user?: string
}

/** Another tab may have made the session of another user current since the page was shown: that account would be given. */
async function decide(
  kernel: Kernel,
  caller: Caller | undefined,
  { user_code: typed, decision, user }: Pressed,
): Promise<Page> {
  if (caller === undefined) throw fail('UNAUTHORIZED')
  if (user !== undefined && user !== caller.user.id) throw edge('another_user')
  const isApproved = decision === 'approve'
  await (isApproved ? approveDevice : denyDevice)(kernel, caller, typed)
  return {
    title: pageText(isApproved ? 'deviceApproved' : 'deviceDenied'),
    content: [html`<p>${pageText(isApproved ? 'deviceApprovedText' : 'deviceDeniedText')}</p>`],
  }
}

/** The form for the code, and why the last one was of no use. */
const entryPage = (failure?: Failure): Page => ({
  title: pageText('deviceTitle'),
  content: [
    html`<p>${pageText('deviceEnterText')}</p>`,
    ...(failure === undefined ? [] : [html`<p class="bad" role="alert">${failure.message}.</p>`]),
    html`<form method="get">
<label for="user_code">${pageText('deviceCode')}</label>
<input id="user_code" name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="64" required>
<button>${pageText('deviceEnterButton')}</button>
</form>`,
  ],
  form: { leadsTo: undefined },
})

function failurePage(failure: Failure): Page | undefined {
  if ([...ANSWER_FAILURES, 'another_user'].includes(failure.code)) return entryPage(failure)
  const text = SIGN_IN_TEXTS[failure.code]
  return text && signInPage(text)
}

const SIGN_IN_TEXTS: Readonly<Record<string, TextName>> = {
  UNAUTHORIZED: 'deviceSignInText',
  SESSION_NOT_FRESH: 'deviceSignInAgainText',
  USER_IS_ANONYMOUS: 'deviceSignInText',
}

const signInPage = (text: TextName): Page => ({
  title: pageText('deviceTitle'),
  content: [html`<p>${pageText(text)}</p>`],
})
