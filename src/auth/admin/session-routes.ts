import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Sessions } from '#identity/live-sessions.ts'
import { CurrentSession, FullUser } from '#identity/schemas.ts'
import type { Session } from '#identity/sessions.ts'
import { named } from '#kernel/http/document/components.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { presentedToken } from '#kernel/http/presented-token.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { ADMIN_COOKIE, clearSessionToken, cookieAge, setSessionToken } from '../door/cookies.ts'
import { SUCCESS, Succeeded } from '../schemas.ts'
import { findParent, impersonate, stopImpersonating } from './impersonation.ts'
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
        'A request by cookie gets the new session as its cookie, and keeps its own in another one until stop-impersonating.',
      body: UserBody,
      response: { 200: Type.Object({ session: CurrentSession, user: FullUser }) },
    },
    handler: async (request, reply) => {
      const caller = request.caller
      const place = { ipAddress: request.clientAddress, userAgent: request.headers['user-agent'] }
      const { token, session, user } = await impersonate(request.kernel, caller, request.body.userId, place)
      if (isByCookie(request)) {
        setSessionToken(config, reply, token, session.expiresAt.getTime() - session.createdAt.getTime())
        ADMIN_COOKIE.set(config, reply, caller.token, cookieAge(kernel, caller.session))
      } else reply.header(HEADER.authToken, token)
      return { session: { ...session, token }, user }
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

const Stopped = Type.Object({
  session: Nullable(CurrentSession),
  user: Nullable(FullUser),
  message: Type.String(),
})
