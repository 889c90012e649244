import { Type } from 'typebox'
import { CurrentSession, SignedInUser } from '#identity/schemas.ts'
import { named } from '#kernel/http/document/components.ts'
import { edge } from '#kernel/http/failures.ts'
import { NOT_EMPTY } from '#kernel/http/schemas.ts'
import { asksToOperate } from '#kernel/http/session-cookie.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { sendStartedSession } from '../door/finish-sign-in.ts'
import { CODE_FAILURES, PASSKEY_FAILURES, PASSWORD_CHECK_FAILURES, PROVIDER_FAILURES } from '../errors.ts'
import { takeChallengeId } from '../passkey/presented-challenge.ts'
import { AssertionResponse, ChallengeId } from '../passkey/schemas.ts'
import { CallbackUrl, Code, Password } from '../schemas.ts'
import { reauthenticateByIdToken } from '../social/given-id-token.ts'
import type { SocialProviders } from '../social/social-providers.ts'
import { beginReauthentication } from '../social/visit.ts'
import { markOf, VISIT } from '../social/visit-request.ts'
import { reauthenticate } from './reauthenticate.ts'

const Reauthentication = Type.Object(
  {
    password: Type.Optional(Password()),
    code: Type.Optional(Code({ description: 'Of the authenticator app, by mail, or a backup code' })),
    response: Type.Optional(AssertionResponse),
    challengeId: Type.Optional(ChallengeId),
    provider: Type.Optional(VISIT.provider),
    callbackURL: CallbackUrl('With `provider`: where the browser is sent then'),
    errorCallbackURL: CallbackUrl('Where it is sent after a failure, with `?error=`'),
    disableRedirect: VISIT.disableRedirect,
    idToken: VISIT.idToken,
  },
  NOT_EMPTY,
)
/** By a provider's page: `url` and `redirect`. Else the session with its new token. */
const Reauthenticated = Type.Object(
  {
    token: Type.Optional(Type.String({ description: 'The old one is not valid any more' })),
    session: Type.Optional(CurrentSession),
    user: Type.Optional(SignedInUser),
    url: Type.Optional(Type.String({ description: 'Of the provider, which completes it' })),
    redirect: Type.Optional(Type.Boolean({ description: 'Whether to go to `url`' })),
  },
  named('Reauthenticated'),
)

export function reauthenticateRoutes(
  app: App,
  kernel: Kernel,
  access: AuthAccess,
  providers: SocialProviders,
): void {
  app.route({
    method: 'POST',
    url: '/reauthenticate',
    config: {
      access: access.signedIn,
      withoutSecondFactor: true,
      limit: 'two_factor',
      redirects: ['callbackURL', 'errorCallbackURL'],
      failures: [
        ...PASSWORD_CHECK_FAILURES,
        ...CODE_FAILURES,
        ...PASSKEY_FAILURES,
        ...PROVIDER_FAILURES,
        'ACCOUNT_NOT_FOUND',
        'ACCOUNT_NOT_LINKED',
        'NOT_SIGNED_IN_AGAIN',
      ],
    },
    schema: {
      operationId: 'reauthenticate',
      summary: 'Show again who you are; the session gets a new token',
      body: Reauthentication,
      response: { 200: Reauthenticated },
    },
    handler: async (request, reply) => {
      const { body } = request
      const { password, code, response, provider, idToken, disableRedirect = false, ...asked } = body
      const [acting, caller] = [request.kernel, request.caller]
      if (provider !== undefined && idToken === undefined) {
        const client = providers.find(provider)
        const from = { mark: markOf(kernel, request, reply), caller }
        const visit = { ...asked, isOfConsole: asksToOperate(request) }
        return { url: await beginReauthentication(acting, client, visit, from), redirect: !disableRedirect }
      }
      if (password === undefined && code === undefined && response === undefined && idToken === undefined)
        throw edge('validation_error', { message: 'Send password, code, response or provider' })
      const assertion = response && { response, challengeId: takeChallengeId(kernel, request, reply, body) }
      const started =
        provider !== undefined && idToken !== undefined
          ? await reauthenticateByIdToken(acting, providers.find(provider), idToken, caller)
          : await reauthenticate(acting, caller, { password, code, assertion })
      sendStartedSession(kernel.config, reply, started)
      const { token, session, user } = started
      return { token, session: { ...session, token }, user }
    },
  })
}
