import { Type } from 'typebox'
import { NAME_MAX } from '#identity/names.ts'
import { CurrentSession } from '#identity/schemas.ts'
import { wantsPage } from '#kernel/http/page.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { authUrl } from '../auth-url.ts'
import { acceptableFields } from '../custom-fields/acceptable.ts'
import { withFields } from '../custom-fields/bodies.ts'
import type { AuthAccess } from '../door/access.ts'
import { noteLoginMethod } from '../door/cookies.ts'
import { finishRedirectedSignIn, finishSignIn, SignInAnswer } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { ADMISSION_FAILURES, CUSTOM_FIELD_FAILURES, fail } from '../errors.ts'
import { anonymousIn, sourceFor } from '../mailing/link-click.ts'
import { askingBrowser } from '../mailing/link-code.ts'
import { requestMail } from '../mailing/request.ts'
import { asAnswer, followLink } from '../redirect.ts'
import { CallbackUrl, Email, LinkToken, Status } from '../schemas.ts'
import { acceptableEmail, acceptableName } from '../user-fields.ts'
import { signInByLink } from './magic-link.ts'

const TARGETS = {
  callbackURL: CallbackUrl('Where the link leads in the end'),
  newUserCallbackURL: CallbackUrl('Where it leads a new user'),
  errorCallbackURL: CallbackUrl('Where the endpoint sends the browser with `?error=` when it failed'),
}
const SignInMagicLink = Type.Object({
  email: Email,
  name: Type.Optional(
    Type.String({ maxLength: NAME_MAX, examples: ['Ada Lovelace'], description: 'Of a new user' }),
  ),
  ...TARGETS,
})
const redirects = Object.keys(TARGETS)

export function magicLinkRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  if (!kernel.config.auth.magic_link.enabled) return
  app.route({
    method: 'POST',
    url: '/sign-in/magic-link',
    config: {
      access: access.known,
      captcha: true,
      captchaInSession: 'for others',
      limit: 'mail',
      redirects,
      failures: ['INVALID_EMAIL', 'FIELD_NOT_ALLOWED', 'MISSING_FIELD'],
    },
    schema: {
      operationId: 'signInMagicLink',
      summary: 'Mail a link that signs in. With codes by mail enabled it has a code too',
      body: withFields(kernel.config, SignInMagicLink, { by: 'user' }),
      response: { 200: Status },
    },
    handler: async (request, reply) => {
      const { name, callbackURL, newUserCallbackURL, errorCallbackURL } = request.body
      const email = acceptableEmail(request.body.email)
      await requestMail(kernel, 'sign-in', {
        ...{ callbackURL, newUserCallbackURL, errorCallbackURL, email },
        name: name === undefined ? undefined : acceptableName(name),
        fields: acceptableFields(kernel, request.body),
        source: sourceFor(request, email),
        anonymousId: anonymousIn(request),
        asked: kernel.config.auth.email_otp.enabled
          ? { browser: askingBrowser(kernel, request, reply) }
          : undefined,
      })
      return { status: true }
    },
  })
  app.route({
    method: 'GET',
    url: '/magic-link/verify',
    config: {
      access: access.known,
      captcha: false,
      withoutSecondFactor: true,
      limit: 'sign_in',
      redirects,
      failures: [
        'INVALID_TOKEN',
        'TOKEN_EXPIRED',
        'INVALID_ORIGIN',
        ...CUSTOM_FIELD_FAILURES,
        ...ADMISSION_FAILURES,
      ],
    },
    schema: {
      operationId: 'verifyMagicLink',
      summary: 'Sign in by a mailed link. A browser that comes from another site gets the page of the link',
      querystring: Type.Object({ token: LinkToken, ...TARGETS }),
      response: {
        200: Type.Object({ ...SignInAnswer.properties, session: Type.Optional(CurrentSession) }),
      },
    },
    handler: (request, reply) => {
      const { token, callbackURL, newUserCallbackURL = callbackURL } = request.query
      const context = signInContextOf(kernel, request, reply)
      // The page of an attacker must not sign a victim in to the attacker's own account.
      if (context.isCrossSite && wantsPage(request))
        return asAnswer(reply.redirect(authUrl(kernel, '/confirm/magic-link', { token, callbackURL }), 302))
      return followLink(reply, async () => {
        if (context.isCrossSite) throw fail('INVALID_ORIGIN')
        const click = { caller: request.knownCaller, context }
        const { admission, isNewUser } = await signInByLink(request.kernel, token, click)
        noteLoginMethod(kernel, reply, 'magic-link')
        if (callbackURL === undefined) {
          const answer = finishSignIn(kernel, reply, admission)
          if ('pendingToken' in admission) return { answer }
          return { answer: { ...answer, session: { ...admission.session, token: admission.token } } }
        }
        const target = (isNewUser ? newUserCallbackURL : undefined) ?? callbackURL
        const redirectTo = finishRedirectedSignIn(kernel, reply, admission, target)
        return { answer: { redirect: true, token: null, url: redirectTo }, redirectTo }
      })
    },
  })
}
