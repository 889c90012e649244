import type { FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import { KNOWN_DEVICE_LIFETIME } from '#identity/known-devices.ts'
import { SignedInUser } from '#identity/schemas.ts'
import type { Config } from '#kernel/config/config.ts'
import { named } from '#kernel/http/document/components.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import { asksToOperate } from '#kernel/http/session-cookie.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { withQuery } from '../redirect.ts'
import { PENDING_LIFETIME, TRUST_LIFETIME } from '../two-factor/pending.ts'
import type { Admission, RenewedSession, StartedSession } from './admit.ts'
import {
  clearSessionToken,
  KNOWN_DEVICE_COOKIE,
  keepSession,
  PENDING_COOKIE,
  setSessionToken,
  TRUSTED_DEVICE_COOKIE,
} from './cookies.ts'

/** The answer of every way in. */
export const SignInAnswer = Type.Object(
  {
    redirect: Type.Boolean({ description: 'Whether to go to `url`' }),
    token: Nullable(
      Type.String({
        description:
          'The session token. With twoFactorRedirect: `2fa_…`, for two-factor/send-otp and verify-*. Null: the email has to be verified first',
      }),
    ),
    url: Nullable(Type.String()),
    user: Type.Optional(SignedInUser),
    twoFactorRedirect: Type.Optional(
      Type.Boolean({ description: 'True: there is no session until the second factor is verified' }),
    ),
    twoFactorMethods: Type.Optional(
      Type.Array(Type.String({ examples: ['totp', 'otp'] }), {
        description: 'Methods of the second factor, besides backup codes',
      }),
    ),
  },
  named('SignedIn'),
)

/** The end of every way in: sets the cookies and returns the answer. better-auth's client goes to `url` by itself. */
export function finishSignIn(
  { config }: Kernel,
  reply: FastifyReply,
  admission: Admission,
  callbackURL: string | null = null,
): Static<typeof SignInAnswer> {
  setCookies(config, reply, admission)
  if ('pendingToken' in admission) {
    const { pendingToken: token, methods } = admission
    return { redirect: false, token, url: null, twoFactorRedirect: true, twoFactorMethods: [...methods] }
  }
  const { token, user } = admission
  return { redirect: callbackURL !== null, token, url: callbackURL, user }
}

/** The same for a way in that redirects the browser: sets the cookies and returns where to. */
export function finishRedirectedSignIn(
  { config }: Kernel,
  reply: FastifyReply,
  admission: Admission | RenewedSession,
  callbackURL: string,
): string {
  setCookies(config, reply, admission)
  if (!('pendingToken' in admission)) return callbackURL
  const query = { twoFactorRedirect: 'true', methods: admission.methods.join(',') }
  // The page is the application's, which cannot see the console's pending sign-in. The console asks where it has begun.
  const page = asksToOperate(reply.request) ? undefined : config.auth.two_factor.page_url
  return withQuery(page ?? callbackURL, query)
}

function setCookies(config: Config, reply: FastifyReply, admission: Admission | RenewedSession): void {
  if ('pendingToken' in admission) {
    clearSessionToken(config, reply)
    PENDING_COOKIE.set(config, reply, admission.pendingToken, PENDING_LIFETIME)
    return
  }
  sendStartedSession(config, reply, admission)
}

/** Sends the tokens of a session that has started, or has a new token. Without a cookie, the session's token is in a header alone. */
export function sendStartedSession(
  config: Config,
  reply: FastifyReply,
  {
    token,
    maxAge,
    user: { id: userId },
    trustedDevice,
    knownDevice,
  }: Pick<StartedSession, 'token' | 'maxAge' | 'user' | 'trustedDevice'> &
    Partial<Pick<StartedSession, 'knownDevice'>>,
  { withCookie = true } = {},
): void {
  if (withCookie) {
    setSessionToken(config, reply, token, maxAge)
    keepSession(config, reply, { userId, token }, maxAge)
  } else reply.header(HEADER.authToken, token)
  PENDING_COOKIE.clear(config, reply)
  if (trustedDevice !== undefined) TRUSTED_DEVICE_COOKIE.set(config, reply, trustedDevice, TRUST_LIFETIME)
  if (knownDevice === undefined) return
  reply.header(HEADER.knownDevice, knownDevice)
  // A browser that is not to remember the session does not remember this, either.
  if (withCookie)
    KNOWN_DEVICE_COOKIE.set(
      config,
      reply,
      knownDevice,
      maxAge === undefined ? undefined : KNOWN_DEVICE_LIFETIME,
    )
}
