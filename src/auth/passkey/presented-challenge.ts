import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kernel } from '#kernel/kernel.ts'
import { PASSKEY_COOKIE } from '../door/cookies.ts'
import { fail } from '../errors.ts'

/** The id of the challenge that a response answers, from the body or the cookie. The cookie is cleared: the challenge is used now. */
export function takeChallengeId(
  { config }: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
  { challengeId = PASSKEY_COOKIE.of(request) }: { readonly challengeId?: string },
): string {
  PASSKEY_COOKIE.clear(config, reply)
  if (challengeId === undefined) throw fail('CHALLENGE_NOT_FOUND')
  return challengeId
}
