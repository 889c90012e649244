import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Sessions } from '#identity/live-sessions.ts'
import { CurrentSession, FullUser } from '#identity/schemas.ts'
import type { Session } from '#identity/sessions.ts'
import { named } from '#kernel/http/document/components.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { presentedToken } from '#kernel/http/presented-token.ts'
import { Nullable, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess, Caller } from '../door/access.ts'
import { ADMIN_COOKIE, clearSessionToken, cookieAge, setSessionToken } from '../door/cookies.ts'
import { SUCCESS, Succeeded } from '../schemas.ts'
import { handOff, redeemHandoff } from './handoff.ts'
import {
  findParent,
  type Impersonation,
  impersonate,
  type Place,
  stopImpersonating,
} from './impersonation.ts'
import { TO } from './permissions.ts'
import { listUserSessions, revokeUserSession, revokeUserSessions } from './sessions.ts'

const UserBody = Type.Object({ userId: Type.String({ maxLength: 64 }) })
const ListedSession = Type.Object(
  { ...CurrentSession.properties, current: Type.Boolean() },
  named('SessionOfUser'),
)

/** Sessions of users, and impersonation. */
export function adminSessionRoutes(app: App, kernel: Kernel, access: AuthAccess, sessions: Sessions): void {
  app.route({
    method: 'POST',
    url: '/admin/list-user-sessions',
    config: { access: access.admin(TO.LIST_SESSIONS), failures: ['USER_NOT_FOUND'] },
    schema: {
      summary: 'The sessions of a user',
      description: '`token` is a handle for revoke-user-session, and no credential.',
      body: UserBody,
      response: { 200: Type.Object({ sessions: Type.Array(ListedSession) }) },
    },
    handler: async (request) => ({
      sessions: await listUserSessions(kernel, request.caller, request.body.userId),
    }),
  })
  app.route({
    method: 'POST',
    url: '/admin/revoke-user-session',
    config: { access: access.admin(TO.REVOKE_SESSIONS), failures: ['USER_NOT_FOUND'] },
    schema: {
      summary: 'End one session of a user',
      body: Type.Object({
        sessionToken: Type.String({ maxLength: 256, description: 'Handle, token or id of the session' }),
      }),
      response: { 200: Succeeded },
    },
    handler: async (request) => {
      await revokeUserSession(request.kernel, request.caller, request.body.sessionToken)
      return SUCCESS
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/revoke-user-sessions',
    config: { access: access.admin(TO.REVOKE_SESSIONS), failures: ['USER_NOT_FOUND'] },
    schema: { summary: 'End all sessions of a user', body: UserBody, response: { 200: Succeeded } },
    handler: async (request) => {
      await revokeUserSessions(request.kernel, request.caller, request.body.userId)
      return SUCCESS
    },
  })
  impersonationRoutes(app, kernel, access, sessions)
}

function impersonationRoutes(app: App, kernel: Kernel, access: AuthAccess, sessions: Sessions): void {
  const { config } = kernel
  app.route({
    method: 'POST',
    url: '/admin/impersonate-user',
    config: {
      access: access.admin(TO.IMPERSONATE),
      failures: ['USER_NOT_FOUND', 'BANNED_USER', 'YOU_CANNOT_IMPERSONATE_ADMINS'],
    },
    schema: {
      summary: 'Begin a session of a user, for an hour',
      description:
        'A request by cookie gets the new session as its cookie, and keeps its own in another one until stop-impersonating. ' +
        'With `handoff` no session begins here: the answer has a code, which exchange-handoff takes.',
      body: Type.Object({
        ...UserBody.properties,
        handoff: Type.Optional(
          Type.Boolean({
            default: false,
            description: 'Answer a code for another page, and keep this session',
          }),
        ),
      }),
      response: { 200: Begun },
    },
    handler: async (request, reply) => {
      const { caller, body } = request
      if (body.handoff === true) return handOff(request.kernel, caller, body.userId)
      const begun = await impersonate(request.kernel, caller, body.userId, placeOf(request))
      if (isByCookie(request)) setImpersonation(reply, begun, caller)
      else reply.header(HEADER.authToken, begun.token)
      return answerOf(begun)
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/exchange-handoff',
    // Knows the session, so that an impersonated one is refused.
    config: {
      access: access.known,
      withoutSecondFactor: true,
      startsSession: true,
      limit: 'sign_in',
      failures: ['INVALID_HANDOFF_CODE'],
    },
    schema: {
      operationId: 'exchangeHandoff',
      summary: 'Begin the impersonation of a code',
      description:
        'For the page that gets the user’s session: within a minute and once, while the admin’s session lives and the admin may still do it.',
      body: Type.Object({ code: Type.String({ maxLength: 256 }) }),
      response: { 200: Type.Object({ session: CurrentSession, user: FullUser }) },
    },
    handler: async (request, reply) => {
      const { knownCaller, kernel, body } = request
      const begun = await redeemHandoff(kernel, body.code, placeOf(request))
      // In the admin's own browser the cookie takes the place of the admin's.
      const isAdmin = knownCaller?.session.id === begun.session.parentSessionId && isByCookie(request)
      setImpersonation(reply, begun, isAdmin ? knownCaller : undefined)
      return answerOf(begun)
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/stop-impersonating',
    config: { access: access.impersonating, whileImpersonating: true, withoutSecondFactor: true },
    schema: {
      summary: 'End the impersonated session',
      description:
        'With the cookie of impersonate-user or `adminToken`, the answer is the session of the admin.',
      body: Type.Object({ adminToken: Type.Optional(Type.String({ maxLength: 256 })) }),
      response: { 200: Stopped },
    },
    handler: async (request, reply) => {
      const caller = request.caller
      const adminToken = request.body.adminToken ?? ADMIN_COOKIE.of(request)
      const parent = await findParent(sessions, caller, adminToken, request.clientAddress)
      await stopImpersonating(request.kernel, caller)
      returnToken(request, reply, parent)
      const message = 'You act as yourself again'
      if (parent === undefined) return { session: null, user: null, message }
      return { session: { ...parent.session, token: parent.token }, user: parent.user, message }
    },
  })

  const isByCookie = (request: FastifyRequest): boolean => presentedToken(config, request)?.by === 'cookie'

  /** `admin`: whose session the browser keeps until stop-impersonating. */
  function setImpersonation(
    reply: FastifyReply,
    { token, session }: Impersonation,
    admin: Caller | undefined,
  ): void {
    setSessionToken(config, reply, token, session.expiresAt.getTime() - session.createdAt.getTime())
    if (admin !== undefined) ADMIN_COOKIE.set(config, reply, admin.token, cookieAge(kernel, admin.session))
  }

  function returnToken(
    request: FastifyRequest,
    reply: FastifyReply,
    parent: { readonly session: Session; readonly token: string } | undefined,
  ): void {
    if (parent !== undefined) reply.header(HEADER.authToken, parent.token)
    if (!isByCookie(request)) return
    if (parent === undefined) clearSessionToken(config, reply)
    else setSessionToken(config, reply, parent.token, cookieAge(kernel, parent.session))
  }
}

const placeOf = ({ clientAddress, headers }: FastifyRequest): Place => ({
  ipAddress: clientAddress,
  userAgent: headers['user-agent'],
})

const answerOf = ({ token, session, user }: Impersonation) => ({ session: { ...session, token }, user })

const Begun = Type.Object({
  session: Type.Optional(CurrentSession),
  user: FullUser,
  code: Type.Optional(
    Type.String({ description: 'With `handoff`, in place of the session: valid for a minute, once' }),
  ),
  expiresAt: Type.Optional(Type.Unsafe<Date>({ ...Timestamp, description: 'The end of the code' })),
})

const Stopped = Type.Object({
  session: Nullable(CurrentSession),
  user: Nullable(FullUser),
  message: Type.String(),
})
