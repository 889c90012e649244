import type { FastifyRequest } from 'fastify'
import type { Visit } from './admit.ts'

export const visitOf = (request: FastifyRequest, remember = true): Visit => ({
  ipAddress: request.ip,
  userAgent: request.headers['user-agent'],
  remember,
})
