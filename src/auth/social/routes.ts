import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { readForms } from '#kernel/http/bodies/body.ts'
import { asksToOperate } from '#kernel/http/session-cookie.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess, Caller } from '../door/access.ts'
import { noteLoginMethod } from '../door/cookies.ts'
import { finishSignIn, SignInAnswer } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { HOOK_FAILURES, PROVIDER_FAILURES } from '../errors.ts'
import { CallbackUrl } from '../schemas.ts'
import { callbackRoutes } from './callback-routes.ts'
import { maySignUp } from './enter.ts'
import { linkIdToken, signInWithIdToken } from './given-id-token.ts'
import type { SocialProviders } from './social-providers.ts'
import { beginLink, beginSocialSignIn } from './visit.ts'
import { markOf, VISIT } from './visit-request.ts'

const SignInSocial = Type.Object({
  ...VISIT,
  newUserCallbackURL: CallbackUrl('In place of callbackURL for a new user'),
  requestSignUp: Type.Optional(
    Type.Boolean({ default: false, description: 'Adds a user also if auth.social.sign_up is `requested`' }),
  ),
  loginHint: Type.Optional(Type.String({ maxLength: 320 })),
})
const LinkSocial = Type.Object(VISIT)
const Linking = Type.Object({
  url: Type.String(),
  redirect: Type.Boolean(),
  status: Type.Optional(Type.Boolean()),
})

export function socialRoutes(app: App, kernel: Kernel, access: AuthAccess, providers: SocialProviders): void {
  app.register(async (part: App) => {
    readForms(part)
    callbackRoutes(part, kernel, access, providers)
  })
  app.route({
    method: 'POST',
    url: '/sign-in/social',
    config: {
      access: access.knownIfAnonymous,
      startsSession: true,
      captcha: true,
      captchaInSession: true,
      limit: 'sign_in',
      redirects: ['callbackURL', 'errorCallbackURL', 'newUserCallbackURL'],
      failures: [
        ...PROVIDER_FAILURES,
        'EMAIL_NOT_FOUND',
        'ACCOUNT_NOT_LINKED',
        'SIGN_UP_DISABLED',
        'MISSING_FIELD',
      ],
    },
    schema: {
      summary: 'Sign in with an account of another service',
      body: SignInSocial,
      response: { 200: SignInAnswer },
    },
    handler: async (request, reply) => {
      const { provider, idToken, disableRedirect = false, requestSignUp = false, ...asked } = request.body
      const client = providers.find(provider)
      const upgrading = maySignUp(kernel, requestSignUp) ? anonymousCaller(request) : undefined
      if (idToken === undefined) {
        const visit = { ...asked, requestSignUp, isOfConsole: asksToOperate(request) }
        const mark = markOf(kernel, request, reply)
        const url = await (upgrading === undefined
          ? beginSocialSignIn(kernel, client, visit, mark)
          : beginLink(kernel, client, visit, { mark, caller: upgrading }))
        return { url, redirect: !disableRedirect, token: null }
      }
      const context = signInContextOf(kernel, request, reply, asked)
      const given = { idToken, requestSignUp, upgrading }
      const { admission } = await signInWithIdToken(request.kernel, client, given, context)
      noteLoginMethod(kernel, reply, provider)
      return finishSignIn(kernel, reply, admission)
    },
  })
  app.route({
    method: 'POST',
    url: '/link-social',
    config: {
      access: access.fresh,
      redirects: ['callbackURL', 'errorCallbackURL'],
      failures: [
        'SIGN_UP_DISABLED',
        'MISSING_FIELD',
        ...PROVIDER_FAILURES,
        ...HOOK_FAILURES,
        'SOCIAL_ACCOUNT_ALREADY_LINKED',
        'ACCOUNT_ALREADY_LINKED_TO_DIFFERENT_USER',
        'UNABLE_TO_LINK_ACCOUNT',
      ],
    },
    schema: { summary: 'Link an account of another service', body: LinkSocial, response: { 200: Linking } },
    handler: async (request, reply) => {
      const { provider, idToken, disableRedirect = false, ...asked } = request.body
      const client = providers.find(provider)
      const caller = request.caller
      if (idToken !== undefined) {
        const context = signInContextOf(kernel, request, reply)
        const admission = await linkIdToken(request.kernel, client, { idToken, caller }, context)
        if (admission !== undefined) finishSignIn(kernel, reply, admission)
        return { url: '', redirect: false, status: true }
      }
      const mark = markOf(kernel, request, reply)
      const visit = { ...asked, isOfConsole: asksToOperate(request) }
      const url = await beginLink(kernel, client, visit, { mark, caller })
      return { url, redirect: !disableRedirect }
    },
  })
}

/** In whose session the account would be the first way in, and no user is added. */
const anonymousCaller = ({ knownCaller: caller }: FastifyRequest): Caller | undefined =>
  caller?.user.isAnonymous === true ? caller : undefined
