import { Type } from 'typebox'
import { SignedInUser } from '#identity/schemas.ts'
import { open } from '#kernel/http/access.ts'
import { wantsPage } from '#kernel/http/page.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { authUrl } from '../auth-url.ts'
import type { AuthAccess } from '../door/access.ts'
import { cookieAge, keepSession, setSessionToken } from '../door/cookies.ts'
import { fail, PASSWORD_CHECK_FAILURES, PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { sourceFor } from '../mailing/link-click.ts'
import { requestMail } from '../mailing/request.ts'
import { answerOrRedirect, asAnswer } from '../redirect.ts'
import { CallbackUrl, Email, LinkToken, Password, Status } from '../schemas.ts'
import { acceptableEmail } from '../user-fields.ts'
import { changePassword, setPassword } from './password.ts'
import { isResetTokenGood, resetPassword } from './reset.ts'

export function passwordRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  for (const url of ['/forget-password', '/request-password-reset']) {
    app.route({
      method: 'POST',
      url,
      config: {
        access: access.known,
        captcha: true,
        limit: 'mail',
        redirects: ['redirectTo'],
        failures: ['INVALID_EMAIL'],
      },
      schema: {
        operationId: 'forgetPassword',
        summary: 'Mail a link to choose a new password',
        body: Type.Object({
          email: Email,
          redirectTo: CallbackUrl('Where the link leads, with `?token=` or `?error=`'),
        }),
        response: { 200: Type.Object({ status: Type.Boolean(), message: Type.String() }) },
      },
      handler: async (request) => {
        const { body } = request
        const email = acceptableEmail(body.email)
        const source = sourceFor(request, email)
        await requestMail(kernel, 'reset-password', { email, callbackURL: body.redirectTo, source })
        return { status: true, message: 'If there is such an account, a link was sent' }
      },
    })
  }
  app.route({
    method: 'GET',
    url: '/reset-password/:token',
    config: { access: open, redirects: ['callbackURL'], failures: ['INVALID_RESET_TOKEN'] },
    schema: {
      operationId: 'followResetLink',
      summary: 'Follow a reset link: is its token good? A browser gets the page to choose a password',
      params: Type.Object({ token: LinkToken }),
      querystring: Type.Object({ callbackURL: CallbackUrl() }),
      response: { 200: Type.Object({ token: LinkToken }) },
    },
    handler: (request, reply) => {
      const { token } = request.params
      const { callbackURL } = request.query
      // A browser, and the application has no page of its own.
      if (callbackURL === undefined && wantsPage(request))
        return asAnswer(reply.redirect(authUrl(kernel, '/confirm/reset-password', { token }), 302))
      return answerOrRedirect(reply, async () => {
        if (!(await isResetTokenGood(kernel, token))) throw fail('INVALID_RESET_TOKEN')
        return { answer: { token }, query: { token } }
      })
    },
  })
  app.route({
    method: 'POST',
    url: '/reset-password',
    config: {
      access: open,
      captcha: false,
      limit: 'sign_in',
      failures: ['INVALID_RESET_TOKEN', ...PASSWORD_POLICY_FAILURES],
    },
    schema: {
      summary: 'Choose a new password with the token of a link',
      body: Type.Object({ newPassword: Password(), token: Type.Optional(LinkToken) }),
      querystring: Type.Object({ token: Type.Optional(LinkToken) }),
      response: { 200: Status },
    },
    handler: async (request) => {
      const { body, query } = request
      await resetPassword(request.kernel, body.token ?? query.token ?? '', body.newPassword)
      return { status: true }
    },
  })
  app.route({
    method: 'POST',
    url: '/change-password',
    config: {
      access: access.signedIn,
      limit: 'sign_in',
      failures: [...PASSWORD_CHECK_FAILURES, ...PASSWORD_POLICY_FAILURES],
    },
    schema: {
      summary: 'Change the password',
      body: Type.Object({
        newPassword: Password(),
        currentPassword: Password(),
        revokeOtherSessions: Type.Optional(Type.Boolean({ default: false })),
      }),
      response: { 200: Type.Object({ token: Nullable(Type.String()), user: SignedInUser }) },
    },
    handler: async (request, reply) => {
      const { user, session } = request.caller
      const token = await changePassword(request.kernel, request.caller, request.body)
      if (token !== undefined) {
        const age = cookieAge(kernel, session)
        setSessionToken(kernel.config, reply, token, age)
        keepSession(kernel.config, reply, { userId: user.id, token }, age)
      }
      return { token: token ?? null, user }
    },
  })
  app.route({
    method: 'POST',
    url: '/set-password',
    config: {
      access: access.fresh,
      enrols: true,
      failures: ['PASSWORD_ALREADY_SET', ...PASSWORD_POLICY_FAILURES],
    },
    schema: {
      summary: 'Set the first password of an account without one',
      body: Type.Object({ newPassword: Password() }),
      response: { 200: Status },
    },
    handler: async (request) => {
      await setPassword(request.kernel, request.caller, request.body.newPassword)
      return { status: true }
    },
  })
}
