import type { FastifyReply } from 'fastify'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Admission } from './admit.ts'
import { setSessionToken } from './cookies.ts'

/** The end of every way in: the session token goes into the cookie and the header, and with the user into the answer. */
export function finishSignIn(
  { config }: Kernel,
  reply: FastifyReply,
  { token, maxAge, user }: Admission,
): { readonly token: string; readonly user: User } {
  setSessionToken(config, reply, token, maxAge)
  return { token, user }
}
