import { Type } from 'typebox'
import { IMAGE_MAX } from '#identity/images.ts'
import { NAME_MAX } from '#identity/names.ts'
import { SignedInUser } from '#identity/schemas.ts'
import { Nullable, OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { withFields } from '../custom-fields/bodies.ts'
import type { AuthAccess } from '../door/access.ts'
import { noteLoginMethod } from '../door/cookies.ts'
import { finishSignIn, SignInAnswer } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { changeEmail } from '../email/change-email.ts'
import {
  CODE_FAILURES,
  CUSTOM_FIELD_FAILURES,
  HOOK_FAILURES,
  LINK_CODE_FAILURES,
  PASSWORD_CHECK_FAILURES,
  PASSWORD_POLICY_FAILURES,
} from '../errors.ts'
import { anonymousIn, linkClickOf, sourceFor } from '../mailing/link-click.ts'
import { askingBrowser } from '../mailing/link-code.ts'
import { requestMail } from '../mailing/request.ts'
import { typedCode } from '../mailing/typed-code.ts'
import { Code, Email, Password } from '../schemas.ts'
import { acceptableEmail } from '../user-fields.ts'
import {
  CODE_TYPES,
  changeEmailByCode,
  checkCode,
  resetPasswordByCode,
  signInByCode,
  verifyEmailByCode,
} from './email-otp.ts'

const TYPES = Object.keys(CODE_TYPES) as (keyof typeof CODE_TYPES)[] // the keys of the object
const CodeType = OneOf(TYPES, { description: 'What the code is for' })
const Otp = Type.String({ maxLength: 64, examples: ['287082'], description: 'The code of the mail' })
const SignInEmailOtp = Type.Object({
  email: Email,
  otp: Otp,
  name: Type.Optional(
    Type.String({ maxLength: NAME_MAX, examples: ['Ada Lovelace'], description: 'Of a new user' }),
  ),
  image: Type.Optional(Type.String({ maxLength: IMAGE_MAX, description: 'Of a new user' })),
})
const Success = Type.Object({ success: Type.Boolean() })

export function emailOtpRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  if (!kernel.config.auth.email_otp.enabled) return
  requestRoutes(app, kernel, access)
  changeRoutes(app, kernel, access)
  redeemRoutes(app, kernel, access)
}

/** They mail a code. The answer is the same whether the address has an account or not. */
function requestRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  const config = { access: access.known, captcha: true, limit: 'mail', failures: ['INVALID_EMAIL'] } as const
  app.route({
    method: 'POST',
    url: '/email-otp/send-verification-otp',
    config: { ...config, captchaInSession: 'for others' },
    schema: {
      operationId: 'sendVerificationOtp',
      summary: 'Mail a code. It replaces none; at most three of an address are open for one use',
      body: Type.Object({ email: Email, type: CodeType }),
      response: { 200: Success },
    },
    handler: async (request, reply) => {
      const email = acceptableEmail(request.body.email)
      const asked = { browser: askingBrowser(kernel, request, reply) }
      const mail = CODE_TYPES[request.body.type]
      const anonymousId = anonymousIn(request)
      await requestMail(kernel, mail, { email, source: sourceFor(request, email), asked, anonymousId })
      return { success: true }
    },
  })
  // The second is the earlier path of better-auth.
  for (const url of ['/email-otp/request-password-reset', '/forget-password/email-otp']) {
    app.route({
      method: 'POST',
      url,
      config,
      schema: {
        operationId: 'requestPasswordResetEmailOtp',
        summary: 'Mail a code to choose a new password',
        body: Type.Object({ email: Email }),
        response: { 200: Success },
      },
      handler: async (request, reply) => {
        const email = acceptableEmail(request.body.email)
        const asked = { browser: askingBrowser(kernel, request, reply) }
        await requestMail(kernel, 'reset-password', { email, source: sourceFor(request, email), asked })
        return { success: true }
      },
    })
  }
}

function changeRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.route({
    method: 'POST',
    url: '/email-otp/request-email-change',
    config: {
      access: access.signedIn,
      limit: 'mail',
      failures: [
        'SIGN_UP_DISABLED',
        'MISSING_FIELD',
        ...LINK_CODE_FAILURES,
        'EMAIL_IS_THE_SAME',
        'SESSION_NOT_FRESH',
        ...PASSWORD_CHECK_FAILURES,
        ...CODE_FAILURES,
      ],
    },
    schema: {
      operationId: 'requestEmailChangeOtp',
      summary:
        'Mail a code to a new address. A proven old address allows it first, by the link or code of a mail of its own',
      body: Type.Object({
        newEmail: Email,
        otp: Type.Optional(Code({ description: 'Of a mail to the old address' })),
        password: Type.Optional(Password({ description: 'In place of that' })),
        code: Type.Optional(Code({ description: 'With the password, where a second factor is in force' })),
      }),
      response: { 200: Success },
    },
    handler: async (request, reply) => {
      const { otp, ...asked } = request.body
      const { email } = request.caller.user
      await changeEmail(request.kernel, request.caller, {
        ...asked,
        otp: otp === undefined ? undefined : typedCode(request, email, otp),
        asked: { browser: askingBrowser(kernel, request, reply) },
      })
      return { success: true }
    },
  })
  app.route({
    method: 'POST',
    url: '/email-otp/change-email',
    config: {
      access: access.signedIn,
      limit: 'sign_in',
      failures: [
        'SIGN_UP_DISABLED',
        'MISSING_FIELD',
        ...LINK_CODE_FAILURES,
        ...HOOK_FAILURES,
        'EMAIL_IS_THE_SAME',
        'INVALID_TOKEN',
      ],
    },
    schema: {
      operationId: 'changeEmailOtp',
      summary: 'Change the address with the code that was mailed to the new one',
      body: Type.Object({ newEmail: Email, otp: Otp }),
      response: { 200: Success },
    },
    handler: async (request, reply) => {
      const { newEmail, otp } = request.body
      const typed = typedCode(request, acceptableEmail(newEmail), otp)
      const click = linkClickOf(kernel, request, reply)
      const { admission } = await changeEmailByCode(request.kernel, request.caller, typed, click)
      if (admission !== undefined) finishSignIn(kernel, reply, admission)
      return { success: true }
    },
  })
}

/** They take a code that was mailed, outside of a change of address. */
function redeemRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.route({
    method: 'POST',
    url: '/sign-in/email-otp',
    config: {
      access: access.known,
      captcha: false,
      startsSession: true,
      limit: 'sign_in',
      failures: [...LINK_CODE_FAILURES, ...CUSTOM_FIELD_FAILURES],
    },
    schema: {
      operationId: 'signInEmailOtp',
      summary: 'Sign in with a code of a mail',
      body: withFields(kernel.config, SignInEmailOtp, { by: 'user' }),
      response: { 200: SignInAnswer },
    },
    handler: async (request, reply) => {
      const { email, otp, ...fields } = request.body
      const typed = typedCode(request, acceptableEmail(email), otp)
      const context = signInContextOf(kernel, request, reply)
      const click = { caller: request.knownCaller, context }
      const { admission } = await signInByCode(request.kernel, typed, fields, click)
      noteLoginMethod(kernel, reply, 'email-otp')
      return finishSignIn(kernel, reply, admission)
    },
  })
  app.route({
    method: 'POST',
    url: '/email-otp/check-verification-otp',
    config: { access: access.known, limit: 'sign_in', failures: LINK_CODE_FAILURES },
    schema: {
      operationId: 'checkVerificationOtp',
      summary: 'Is a code right? It stays valid',
      body: Type.Object({ email: Email, type: CodeType, otp: Otp }),
      response: { 200: Success },
    },
    handler: async (request) => {
      const { email, type, otp } = request.body
      await checkCode(request.kernel, CODE_TYPES[type], typedCode(request, acceptableEmail(email), otp))
      return { success: true }
    },
  })
  app.route({
    method: 'POST',
    url: '/email-otp/verify-email',
    config: {
      access: access.known,
      captcha: false,
      withoutSecondFactor: true,
      startsSession: true,
      limit: 'sign_in',
      failures: LINK_CODE_FAILURES,
    },
    schema: {
      operationId: 'verifyEmailOtp',
      summary: 'Verify the address with a code of a mail',
      body: Type.Object({ email: Email, otp: Otp }),
      response: {
        200: Type.Object({
          ...Type.Partial(SignInAnswer).properties,
          status: Type.Boolean(),
          token: Nullable(Type.String()),
          user: SignedInUser,
        }),
      },
    },
    handler: async (request, reply) => {
      const { email, otp } = request.body
      const typed = typedCode(request, acceptableEmail(email), otp)
      const click = linkClickOf(kernel, request, reply)
      const { user, admission } = await verifyEmailByCode(request.kernel, typed, click)
      return { token: null, ...(admission && finishSignIn(kernel, reply, admission)), status: true, user }
    },
  })
  app.route({
    method: 'POST',
    url: '/email-otp/reset-password',
    config: {
      access: access.known,
      captcha: false,
      limit: 'sign_in',
      failures: [...LINK_CODE_FAILURES, ...PASSWORD_POLICY_FAILURES],
    },
    schema: {
      operationId: 'resetPasswordEmailOtp',
      summary: 'Choose a new password with a code of a mail',
      body: Type.Object({ email: Email, otp: Otp, password: Password() }),
      response: { 200: Success },
    },
    handler: async (request) => {
      const { email, otp, password } = request.body
      const typed = typedCode(request, acceptableEmail(email), otp)
      await resetPasswordByCode(request.kernel, typed, password)
      return { success: true }
    },
  })
}
