import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import type { Sessions } from '#identity/live-sessions.ts'
import { CurrentSession, FullUser } from '#identity/schemas.ts'
import { named } from '#kernel/http/document/components.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { clearSessionToken, cookieAge, forgetKept, setSessionToken } from '../door/cookies.ts'
import { Status } from '../schemas.ts'
import { createSignOut } from '../session/sign-out.ts'
import { type DeviceSession, endDeviceSessions, expectDeviceSession, shownSession } from './kept-sessions.ts'
import { presentedSessions } from './presented-sessions.ts'

const DeviceSessionAnswer = Type.Object({ session: CurrentSession, user: FullUser }, named('DeviceSession'))
const Named = Type.Object({
  sessionToken: Type.String({
    maxLength: 256,
    description: 'Handle, token or id of a session that this browser keeps',
  }),
})

/**
 * A browser needs no session for these routes: the cookies of those that it keeps are the proof. An impersonated session is refused, as on
 * all routes that know a session.
 */
export function multiSessionRoutes(app: App, kernel: Kernel, access: AuthAccess, sessions: Sessions): void {
  const { config } = kernel
  if (!config.auth.multi_session.enabled) return
  const signOut = createSignOut(kernel)
  const route = { access: access.known, withoutSecondFactor: true, limit: 'default' } as const
  const activate = (reply: FastifyReply, { token, session }: DeviceSession): void =>
    setSessionToken(config, reply, token, cookieAge(kernel, session))

  app.route({
    method: 'GET',
    url: '/multi-session/list-device-sessions',
    config: route,
    schema: {
      summary: 'The sessions that this browser keeps, one of each user',
      description:
        '`token` is a handle for set-active and revoke, and the token itself for the current session only.',
      response: { 200: Type.Array(DeviceSessionAnswer) },
    },
    handler: async (request, reply) =>
      (await presentedSessions(kernel, sessions, request, reply)).map(shownSession),
  })
  app.route({
    method: 'POST',
    url: '/multi-session/set-active',
    config: { ...route, failures: ['INVALID_SESSION_TOKEN'] },
    schema: {
      summary: 'Go on as another user of this browser',
      body: Named,
      response: { 200: DeviceSessionAnswer },
    },
    handler: async (request, reply) => {
      const found = await presentedSessions(kernel, sessions, request, reply)
      const chosen = expectDeviceSession(found, request.body.sessionToken)
      activate(reply, chosen)
      return shownSession({ ...chosen, current: true })
    },
  })
  app.route({
    method: 'POST',
    url: '/multi-session/revoke',
    config: { ...route, failures: ['INVALID_SESSION_TOKEN'] },
    schema: {
      summary: 'End a session that this browser keeps',
      description: 'If it is the current one, the newest of the others becomes current.',
      body: Named,
      response: { 200: Status },
    },
    handler: async (request, reply) => {
      const found = await presentedSessions(kernel, sessions, request, reply)
      const ended = expectDeviceSession(found, request.body.sessionToken)
      await endDeviceSessions(request.kernel, signOut, [ended])
      forgetKept(config, reply, ended)
      if (ended.current) {
        const [next] = found.filter((each) => each !== ended)
        if (next === undefined) clearSessionToken(config, reply)
        else activate(reply, next)
      }
      return { status: true }
    },
  })
}
