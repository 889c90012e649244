import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { isTokenShaped } from '#identity/tokens.ts'
import { open } from '#kernel/http/access.ts'
import { readForms } from '#kernel/http/body.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { type AuthAccess, callerOf, kernelFor } from '../access.ts'
import { presentedState, setStateCookie } from '../cookies.ts'
import { finishSignIn, SignInAnswer } from '../finish-sign-in.ts'
import { CallbackUrl } from '../schemas.ts'
import { signInContextOf } from '../sign-in-context.ts'
import { callbackRoutes } from './callback-routes.ts'
import { beginLink, beginSocialSignIn, linkIdToken, signInWithIdToken } from './social.ts'
import type { SocialProviders } from './social-providers.ts'
import { STATE_LIFETIME } from './state.ts'

/** RFC 6749, appendices A.12 and A.17. */
const Token = Type.Optional(Type.String({ maxLength: 16_384, pattern: '^[ -~]*$' }))
const IdToken = Type.Object(
  {
    token: Type.String({ minLength: 1, maxLength: 16_384 }),
    nonce: Type.Optional(Type.String({ maxLength: 512 })),
    accessToken: Token,
    refreshToken: Token,
    expiresAt: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 253_402_300_799_999,
        description: 'End of the access token, since 1970',
      }),
    ),
  },
  {
    description:
      'An ID token that a native app or a script of the provider has received, in place of the redirect',
  },
)
const VISIT = {
  provider: Type.String({ maxLength: 64, examples: ['google'] }),
  callbackURL: CallbackUrl('Where the browser is sent then'),
  errorCallbackURL: CallbackUrl('Where it is sent after a failure, with `?error=`'),
  disableRedirect: Type.Optional(
    Type.Boolean({ default: false, description: 'The client goes to `url` by itself' }),
  ),
  scopes: Type.Optional(
    Type.Array(Type.String({ maxLength: 256, pattern: '^[!#-\\[\\]-~]+$' }), { maxItems: 64 }),
  ),
  idToken: Type.Optional(IdToken),
}
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

const VISIT_FAILURES = ['PROVIDER_NOT_FOUND', 'PROVIDER_UNAVAILABLE']
const ID_TOKEN_FAILURES = ['INVALID_ID_TOKEN', 'ID_TOKEN_NOT_SUPPORTED', 'UNABLE_TO_GET_USER_INFO']
export function socialRoutes(app: App, kernel: Kernel, access: AuthAccess, providers: SocialProviders): void {
  app.register(async (part: App) => {
    readForms(part)
    callbackRoutes(part, kernel, access, providers)
  })
  app.route({
    method: 'POST',
    url: '/sign-in/social',
    config: {
      access: open,
      startsSession: true,
      limit: 'sign_in',
      redirects: ['callbackURL', 'errorCallbackURL', 'newUserCallbackURL'],
      failures: [
        ...VISIT_FAILURES,
        ...ID_TOKEN_FAILURES,
        'EMAIL_NOT_FOUND',
        'ACCOUNT_NOT_LINKED',
        'SIGN_UP_DISABLED',
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
      if (idToken === undefined) {
        const visit = { ...asked, requestSignUp }
        const url = await beginSocialSignIn(kernel, client, visit, markOf(kernel, request, reply))
        return { url, redirect: !disableRedirect, token: null }
      }
      const context = signInContextOf(kernel, request, reply, asked)
      const given = { idToken, requestSignUp }
      const { admission } = await signInWithIdToken(kernelFor(kernel, request), client, given, context)
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
        ...VISIT_FAILURES,
        ...ID_TOKEN_FAILURES,
        'SOCIAL_ACCOUNT_ALREADY_LINKED',
        'ACCOUNT_ALREADY_LINKED_TO_DIFFERENT_USER',
        'UNABLE_TO_LINK_ACCOUNT',
      ],
    },
    schema: { summary: 'Link an account of another service', body: LinkSocial, response: { 200: Linking } },
    handler: async (request, reply) => {
      const { provider, idToken, disableRedirect = false, ...asked } = request.body
      const client = providers.find(provider)
      const caller = callerOf(request)
      if (idToken !== undefined) {
        await linkIdToken(kernelFor(kernel, request), client, idToken, caller)
        return { url: '', redirect: false, status: true }
      }
      const mark = markOf(kernel, request, reply)
      const url = await beginLink(kernel, client, asked, { mark, caller })
      return { url, redirect: !disableRedirect }
    },
  })
}

/** The mark of this browser, which several visits share: those of two tabs at once. */
function markOf({ config, random }: Kernel, request: FastifyRequest, reply: FastifyReply): string {
  const presented = presentedState(request)
  const mark = presented !== undefined && isTokenShaped(presented) ? presented : randomToken(random)
  setStateCookie(config, reply, mark, STATE_LIFETIME)
  return mark
}
