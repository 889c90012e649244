import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kernel } from '#kernel/kernel.ts'
import type { Visit } from './admit.ts'
import { markBrowser } from './cookies.ts'

export const visitOf = (
  kernel: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
  { rememberMe = true, callbackURL }: { rememberMe?: boolean; callbackURL?: string } = {},
): Visit => ({
  ipAddress: request.clientAddress,
  userAgent: request.headers['user-agent'],
  remember: rememberMe,
  callbackURL,
  markBrowser: (mark) => markBrowser(kernel.config, reply, mark),
})
