import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { CurrentSession, FullUser } from '#identity/wire.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../access.ts'
import { dismiss } from '../admit.ts'
import { clearToken } from '../cookies.ts'

const SessionAnswer = Type.Object({ session: CurrentSession, user: FullUser })

export function sessionRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  const getSession = async ({ caller }: FastifyRequest, reply: FastifyReply) => {
    // Only with `require_authentication: false` does anybody get here without one.
    if (caller === undefined) return reply.serializer(JSON.stringify).send(null)
    return { session: { ...caller.session, token: caller.token }, user: caller.user }
  }
  for (const method of ['GET', 'POST'] as const) {
    app.route({
      method,
      url: '/get-session',
      config: { access: access.signedInIfRequired },
      schema: { summary: 'The current session and its user', response: { 200: SessionAnswer } },
      handler: getSession,
    })
  }
  app.route({
    method: 'POST',
    url: '/sign-out',
    config: { access: access.signedInIfRequired },
    schema: {
      summary: 'End the current session',
      response: { 200: Type.Object({ success: Type.Boolean() }) },
    },
    handler: async ({ caller }, reply) => {
      if (caller !== undefined) await dismiss(kernel, caller.session)
      clearToken(kernel.config, reply)
      return { success: true }
    },
  })
}
