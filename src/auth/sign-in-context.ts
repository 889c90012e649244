import type { FastifyReply, FastifyRequest } from 'fastify'
import { crossSite } from '#kernel/http/origins.ts'
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
  isCrossSite: crossSite(kernel, request.headers) !== undefined,
  callbackURL,
  markBrowser: (mark) => markBrowser(kernel.config, reply, mark),
})
