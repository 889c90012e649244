import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Sessions } from '#identity/live-sessions.ts'
import { CurrentSession, FullUser } from '#identity/schemas.ts'
import { Failure } from '#kernel/errors.ts'
import { named } from '#kernel/http/document/components.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { findParent } from '../admin/impersonation.ts'
import type { AuthAccess, Caller } from '../door/access.ts'
import { ADMIN_COOKIE, clearSessionToken, forgetKept } from '../door/cookies.ts'
import { fail } from '../errors.ts'
import { mayHaveToken, type Tokens } from '../jwt/jwt.ts'
import { endDeviceSessions } from '../multi-session/kept-sessions.ts'
import { presentedSessions } from '../multi-session/presented-sessions.ts'
import { SUCCESS, Succeeded } from '../schemas.ts'
import { createRepeatedSessions } from './repeated-session.ts'
import { revokeOtherSessions, revokeSession, revokeSessions, sessionsOf } from './session.ts'
import { createSignOut } from './sign-out.ts'

const SESSION_ANSWER = { session: CurrentSession, user: FullUser }
const SessionAnswer = Type.Object(SESSION_ANSWER, named('SessionAndUser'))
const SessionOrNull = Nullable(
  Type.Object(SESSION_ANSWER, { ...named('SessionAndUser'), description: 'Null without a session' }),
)
const ListedSession = Type.Object(
  {
    ...CurrentSession.properties,
    token: Type.String({
      description: 'A handle for revoke-session; the token itself for the current session only',
    }),
    current: Type.Boolean(),
  },
  named('ListedSession'),
)
const Revoked = Type.Object({ status: Type.Boolean(), success: Type.Boolean(), count: Type.Integer() })

type SessionParts = { readonly sessions: Sessions; readonly tokens: Tokens }

export function sessionRoutes(
  app: App,
  kernel: Kernel,
  access: AuthAccess,
  { sessions, tokens }: SessionParts,
): void {
  const config = { access: access.signedInIfRequired }
  const read = { ...config, whileImpersonating: true }
  const always = { ...read, withoutSecondFactor: true }
  const signOut = createSignOut(kernel)
  const { enable_session_listing, enable_session_revocation, require_authentication } =
    kernel.config.auth.session_management

  const { enabled, header } = kernel.config.auth.jwt
  /** False when the session has ended meanwhile. */
  const sendToken = async (
    request: FastifyRequest,
    caller: Caller,
    reply: FastifyReply,
  ): Promise<boolean> => {
    if (!mayHaveToken(kernel, caller)) return true
    const held = tokens.held(kernel, caller)
    const given = held === undefined ? await tokens.ifGiven(request.kernel, caller) : { token: held }
    if (given === 'session ended') return false
    if (given.token !== undefined) reply.header(HEADER.authJwt, given.token)
    return true
  }
  // Fastify itself would send null as an empty body.
  const withoutSession = (reply: FastifyReply) => reply.serializer(JSON.stringify).send(null)
  const getSession = async (request: FastifyRequest, reply: FastifyReply) => {
    const { method, knownCaller: caller } = request
    // Without a session only under `require_authentication: false`.
    if (caller === undefined) return withoutSession(reply)
    const isAlive = !(enabled && header) || method === 'HEAD' || (await sendToken(request, caller, reply))
    if (!isAlive && require_authentication) throw fail('UNAUTHORIZED')
    if (!isAlive) return withoutSession(reply)
    return { session: { ...caller.session, token: caller.token }, user: caller.user }
  }
  const { fastPath, keepAnswer } = createRepeatedSessions(kernel, { sessions, tokens })
  for (const method of ['GET', 'POST'] as const) {
    app.route({
      method,
      url: '/get-session',
      config: { ...always, fastPath },
      onSend: keepAnswer,
      schema: {
        operationId: 'getSession',
        summary: 'The current session and its user',
        response: { 200: require_authentication ? SessionAnswer : SessionOrNull },
      },
      handler: getSession,
    })
  }
  app.route({
    method: 'POST',
    url: '/sign-out',
    config: { ...always, access: access.signedInOrKept },
    schema: {
      summary: 'End the current session, and those that the browser keeps beside it',
      response: { 200: Succeeded },
    },
    handler: async (request, reply) => {
      clearSessionToken(kernel.config, reply)
      const kept = await presentedSessions(kernel, sessions, request, reply)
      const caller = await signedOutBy(request)
      // First, since the caller's may have ended in the meantime, which is answered by 401.
      const others = kept.filter(({ session }) => session.id !== caller?.session.id)
      await endDeviceSessions(request.kernel, signOut, others)
      for (const each of kept) forgetKept(kernel.config, reply, each)
      if (caller === undefined && others.length === 0 && require_authentication) throw fail('UNAUTHORIZED')
      await actOrEmpty(kernel, caller, (caller) => signOut(request.kernel, caller), undefined)
      return SUCCESS
    },
  })
  /** The caller; in a browser that impersonates a user the admin, whose session ends with the impersonated one. */
  async function signedOutBy(request: FastifyRequest): Promise<Caller | undefined> {
    const { knownCaller: caller, clientAddress } = request
    if (caller === undefined || caller.session.impersonatedBy === null) return caller
    return (await findParent(sessions, caller, ADMIN_COOKIE.of(request), clientAddress)) ?? caller
  }

  if (enable_session_listing) {
    app.route({
      method: 'GET',
      url: '/list-sessions',
      config: read,
      schema: { summary: 'The sessions of the user', response: { 200: Type.Array(ListedSession) } },
      handler: async ({ knownCaller: caller }) => (caller === undefined ? [] : sessionsOf(kernel, caller)),
    })
  }
  if (enable_session_revocation) revocationRoutes(app, kernel, config)
}

function revocationRoutes(app: App, kernel: Kernel, config: { access: AuthAccess['signedIn'] }): void {
  const revoked = async (caller: Caller | undefined, revoke: (caller: Caller) => Promise<number>) => ({
    status: true,
    success: true,
    count: await actOrEmpty(kernel, caller, revoke, 0),
  })
  app.route({
    method: 'POST',
    url: '/revoke-session',
    config,
    schema: {
      summary: 'End one session of the user',
      body: Type.Object({
        token: Type.String({ maxLength: 256, description: 'Handle, token or id of the session' }),
      }),
      response: { 200: Revoked },
    },
    handler: (request) =>
      revoked(request.knownCaller, (caller) => revokeSession(request.kernel, caller, request.body.token)),
  })
  app.route({
    method: 'POST',
    url: '/revoke-sessions',
    config,
    schema: { summary: 'End all sessions of the user', response: { 200: Revoked } },
    handler: async (request, reply) => {
      const answer = await revoked(request.knownCaller, (caller) => revokeSessions(request.kernel, caller))
      // A session that is refused lives on.
      clearSessionToken(kernel.config, reply)
      return answer
    },
  })
  app.route({
    method: 'POST',
    url: '/revoke-other-sessions',
    config,
    schema: { summary: 'End all sessions of the user but this one', response: { 200: Revoked } },
    handler: (request) =>
      revoked(request.knownCaller, (caller) => revokeOtherSessions(request.kernel, caller)),
  })
}

/**
 * Where no session is required, a request without one gets an empty answer, and so does one whose session has just ended.
 */
async function actOrEmpty<T>(
  { config }: Kernel,
  caller: Caller | undefined,
  act: (caller: Caller) => Promise<T>,
  empty: T,
): Promise<T> {
  if (caller === undefined) return empty
  try {
    return await act(caller)
  } catch (error) {
    const isStranger = error instanceof Failure && error.code === 'UNAUTHORIZED'
    if (config.auth.session_management.require_authentication || !isStranger) throw error
    return empty
  }
}
