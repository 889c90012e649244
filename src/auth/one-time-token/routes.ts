import { Type } from 'typebox'
import { CurrentSession, FullUser } from '#identity/schemas.ts'
import { withinMaxAge } from '#identity/sessions.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import type { AuthAccess } from '../door/access.ts'
import { sendStartedSession } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { issueOneTimeToken, redeemOneTimeToken } from './one-time-token.ts'

const Token = Type.String({ maxLength: 256 })

export function oneTimeTokenRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  const { enabled, set_session_cookie: withCookie } = kernel.config.auth.one_time_token
  if (!enabled) return
  app.route({
    method: 'GET',
    url: '/one-time-token/generate',
    config: { access: access.signedIn, limit: 'default', failures: ['TOO_MANY_DERIVED_SESSIONS'] },
    schema: {
      operationId: 'generateOneTimeToken',
      summary: 'A token for another browser or app of the user',
      description: 'Whoever redeems it begins a session like this one, which ends with this one.',
      response: { 200: Type.Object({ token: Token }) },
    },
    handler: async ({ method, kernel, caller }) => ({
      // HEAD issues none, and has the headers of a GET.
      token: method === 'HEAD' ? randomToken(kernel.random) : await issueOneTimeToken(kernel, caller),
    }),
  })
  app.route({
    method: 'POST',
    url: '/one-time-token/verify',
    // Knows the session, so that an impersonated one is refused.
    config: {
      access: access.known,
      withoutSecondFactor: true,
      startsSession: true,
      limit: 'sign_in',
      failures: ['INVALID_ONE_TIME_TOKEN'],
    },
    schema: {
      operationId: 'verifyOneTimeToken',
      summary: 'Begin a session with a token of another one',
      description: 'The session has the age and the proofs of the other one, and ends with it.',
      body: Type.Object({ token: Token }),
      response: { 200: Type.Object({ session: CurrentSession, user: FullUser }) },
    },
    handler: async (request, reply) => {
      const context = signInContextOf(kernel, request, reply)
      const started = await redeemOneTimeToken(request.kernel, request.body.token, context)
      sendStartedSession(kernel.config, reply, started, { withCookie })
      const { token, session, user } = started
      return { session: { ...withinMaxAge(kernel.config, session), token }, user }
    },
  })
}
