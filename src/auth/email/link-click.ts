import type { FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { giveToken, presentedBrowser } from '../cookies.ts'
import { signInContextOf } from '../sign-in-context.ts'
import type { Followed } from './email.ts'
import type { Click } from './first-proof.ts'

export const clickOf = (kernel: Kernel, request: FastifyRequest, reply: FastifyReply): Click => ({
  caller: request.caller,
  browser: presentedBrowser(request),
  context: signInContextOf(kernel, request, reply),
})

/** Gives the browser the session that has begun, if one has. */
export function handOver({ config }: Kernel, reply: FastifyReply, { user, admission }: Followed): User {
  if (admission !== undefined) giveToken(config, reply, admission.token, admission.maxAge)
  return user
}
