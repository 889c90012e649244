import { Type } from 'typebox'
import { SignedInUser } from '#identity/schemas.ts'
import { open } from '#kernel/http/access.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { finishRedirectedSignIn, finishSignIn, SignInAnswer } from '../door/finish-sign-in.ts'
import {
  ADMISSION_FAILURES,
  CODE_FAILURES,
  fail,
  LINK_FAILURES,
  PASSWORD_CHECK_FAILURES,
  PASSWORD_POLICY_FAILURES,
} from '../errors.ts'
import { linkClickOf } from '../mailing/link-click.ts'
import { requestMail } from '../mailing/request.ts'
import { followLink } from '../redirect.ts'
import { CallbackUrl, Code, Email, LinkToken, Password, Status } from '../schemas.ts'
import { acceptableEmail } from '../user-fields.ts'
import { changeEmail } from './change-email.ts'
import { confirmEmailLink, followEmailLink } from './follow-link.ts'

const Link = Type.Object({
  token: LinkToken,
  callbackURL: CallbackUrl('Where the browser is sent then, with `?error=` when it failed'),
})
/** With `auth.email.sign_in_after_verification` the answer of a way in, too. */
const Verified = Type.Object({
  ...Type.Partial(SignInAnswer).properties,
  status: Type.Boolean(),
  user: SignedInUser,
})
const MailCallbackUrl = CallbackUrl('Where the link in the mail leads in the end')

export function emailRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.route({
    method: 'GET',
    url: '/verify-email',
    config: {
      access: access.known,
      captcha: false,
      withoutSecondFactor: true,
      limit: 'sign_in',
      redirects: ['callbackURL'],
      failures: ['INVALID_TOKEN', 'TOKEN_EXPIRED', ...ADMISSION_FAILURES],
    },
    schema: { summary: 'Follow a link from a mail', querystring: Link, response: { 200: Verified } },
    handler: (request, reply) => {
      const { token, callbackURL } = request.query
      return followLink(reply, async () => {
        const click = linkClickOf(kernel, request, reply)
        const { user, admission } = await followEmailLink(request.kernel, token, click)
        if (admission === undefined) return { answer: { status: true, user } }
        if (callbackURL === undefined)
          return { answer: { ...finishSignIn(kernel, reply, admission), status: true, user } }
        const redirectTo = finishRedirectedSignIn(kernel, reply, admission, callbackURL)
        return { answer: { status: true, user }, redirectTo }
      })
    },
  })
  app.route({
    method: 'POST',
    url: '/verify-email',
    config: {
      access: access.known,
      captcha: false,
      withoutSecondFactor: true,
      startsSession: true,
      limit: 'sign_in',
      failures: [...LINK_FAILURES, ...PASSWORD_POLICY_FAILURES, ...ADMISSION_FAILURES],
    },
    schema: {
      operationId: 'confirmEmail',
      summary: 'Do what the page of a mailed link does',
      body: Type.Object({
        token: LinkToken,
        password: Type.Optional(
          Password({ description: 'Of the account, at the first proof of its address' }),
        ),
        newPassword: Type.Optional(Password({ description: 'Instead of a password that is not known' })),
      }),
      response: { 200: Verified },
    },
    handler: async (request, reply) => {
      const { token, ...values } = request.body
      const click = linkClickOf(kernel, request, reply)
      const { user, admission } = await confirmEmailLink(request.kernel, token, click, values)
      return { ...(admission && finishSignIn(kernel, reply, admission)), status: true, user }
    },
  })
  app.route({
    method: 'POST',
    url: '/send-verification-email',
    config: {
      access: open,
      captcha: true,
      limit: 'mail',
      redirects: ['callbackURL'],
      failures: ['INVALID_EMAIL', 'VERIFICATION_EMAIL_NOT_ENABLED'],
    },
    schema: {
      summary: 'Mail a verification link',
      body: Type.Object({ email: Email, callbackURL: MailCallbackUrl }),
      response: { 200: Status },
    },
    handler: async ({ body }) => {
      if (!kernel.config.auth.email.verification_enabled) throw fail('VERIFICATION_EMAIL_NOT_ENABLED')
      const email = acceptableEmail(body.email)
      await requestMail(kernel, 'verify-email', { email, callbackURL: body.callbackURL })
      return { status: true }
    },
  })
  app.route({
    method: 'POST',
    url: '/change-email',
    config: {
      access: access.signedIn,
      limit: 'mail',
      redirects: ['callbackURL'],
      failures: [
        'SIGN_UP_DISABLED',
        'MISSING_FIELD',
        'INVALID_EMAIL',
        'EMAIL_IS_THE_SAME',
        'SESSION_NOT_FRESH',
        ...PASSWORD_CHECK_FAILURES,
        ...CODE_FAILURES,
      ],
    },
    schema: {
      summary: 'Change the email address',
      body: Type.Object({
        newEmail: Email,
        callbackURL: MailCallbackUrl,
        password: Type.Optional(Password({ description: 'In place of the link to the old address' })),
        code: Type.Optional(Code({ description: 'With the password, where a second factor is in force' })),
      }),
      response: { 200: Type.Object({ status: Type.Boolean(), message: Type.String() }) },
    },
    handler: async (request) => {
      await changeEmail(request.kernel, request.caller, request.body)
      return { status: true, message: 'A link was sent; the address changes when it is followed' }
    },
  })
}
