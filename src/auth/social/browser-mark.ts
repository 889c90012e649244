import type { FastifyReply, FastifyRequest } from 'fastify'
import { isTokenShaped } from '#identity/tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { STATE_COOKIE } from '../door/cookies.ts'
import { STATE_LIFETIME } from './state.ts'

/** The mark of this browser, which several visits share: those of two tabs at once. */
export function markOf({ config, random }: Kernel, request: FastifyRequest, reply: FastifyReply): string {
  const presented = STATE_COOKIE.of(request)
  const mark = presented !== undefined && isTokenShaped(presented) ? presented : randomToken(random)
  STATE_COOKIE.set(config, reply, mark, STATE_LIFETIME)
  return mark
}
