import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Sessions } from '#identity/live-sessions.ts'
import { sessionCookieName } from '#kernel/http/session-cookie.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { forgetKept, keptSessions } from '../door/cookies.ts'
import { type DeviceSession, findDeviceSessions } from './kept-sessions.ts'

/** The sessions that the browser of a request keeps. It forgets those that have ended. */
export async function presentedSessions(
  { config }: Kernel,
  sessions: Sessions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<DeviceSession[]> {
  const kept = keptSessions(config, request)
  const active = request.cookies[sessionCookieName(config, request)]
  const found = await findDeviceSessions(sessions, { kept, active, address: request.clientAddress })
  for (const each of kept)
    if (!found.some(({ token }) => token === each.token)) forgetKept(config, reply, each)
  return found
}
