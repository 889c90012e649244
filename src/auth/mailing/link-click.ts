import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Source } from '#identity/known-devices.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Caller } from '../door/access.ts'
import { BROWSER_COOKIE, KNOWN_DEVICE_COOKIE } from '../door/cookies.ts'
import { type SignInContext, signInContextOf } from '../door/sign-in-context.ts'

/** Where the click on a mailed link comes from. */
export type LinkClick = {
  readonly caller: Caller | undefined
  /** The cookie of a browser in which the password was set or shown (`markBrowser`). */
  readonly browser: string | undefined
  readonly context: SignInContext
}

export const linkClickOf = (kernel: Kernel, request: FastifyRequest, reply: FastifyReply): LinkClick => ({
  caller: request.knownCaller,
  browser: BROWSER_COOKIE.of(request),
  context: signInContextOf(kernel, request, reply),
})

/** The click as a source of requests about this user, for whom a session of another user does not count. */
export const sourceOf = ({ id }: Pick<User, 'id'>, { caller, context }: LinkClick): Source => ({
  sessionId: caller?.user.id === id ? caller.session.id : undefined,
  knownDevice: context.knownDevice,
})

/** A request for a mail as its source: it names the address, and may come from its user. */
export function sourceFor(request: FastifyRequest, email: string): Source {
  const { knownCaller: caller } = request
  const sessionId = caller?.user.email === email ? caller.session.id : undefined
  return { sessionId, knownDevice: KNOWN_DEVICE_COOKIE.of(request) }
}

/** The anonymous user in whose session a sign-in by mail is asked for. */
export const anonymousIn = ({ knownCaller: caller }: FastifyRequest): string | undefined =>
  caller?.user.isAnonymous === true ? caller.user.id : undefined
