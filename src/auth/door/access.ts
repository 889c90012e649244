import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Authority } from '#identity/act.ts'
import type { LiveSession, Sessions } from '#identity/live-sessions.ts'
import { isPermitted, permissionText } from '#identity/permissions.ts'
import { proofHolds, type SessionProof } from '#identity/proof.ts'
import { lacksSecondFactor } from '#identity/second-factor.ts'
import { type Access, open } from '#kernel/http/access.ts'
import { isGet } from '#kernel/http/methods.ts'
import { beyondReach } from '#kernel/http/origins.ts'
import { presentedToken } from '#kernel/http/presented-token.ts'
import { expectUser } from '#kernel/http/session-cookie.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AdminPermission } from '../admin/permissions.ts'
import { fail } from '../errors.ts'
import { isRestricted, mayEnrol } from '../two-factor/restricted.ts'
import { clearDeadCookies, keepSession, keptSessions, setSessionToken } from './cookies.ts'
import { recordRefusedAct } from './record-refused-act.ts'

/** The user and session that a request's token belongs to. Verbs learn nothing else about the caller. */
export type Caller = LiveSession & {
  readonly token: string
  /** The stored hash, after the caller has also shown the password. */
  readonly password?: string
  /** The route is closed to a session that lacks the required second factor, and so is what the session does in the transaction. */
  readonly mustHaveFactor?: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined without a live session that the route is open to. */
    knownCaller: Caller | undefined
    /** The same on routes whose access requires a session; it throws on others. */
    readonly caller: Caller
  }
  interface FastifyContextConfig {
    /** Open to a session that lacks the second factor which the user's role requires (auth.md 7). Closed by default. */
    withoutSecondFactor?: boolean
    /** Open to such a session of a user without any factor, shortly after a proof (two-factor/restricted.ts). */
    enrols?: boolean
    /** Open to an impersonated session too (auth.md 10). All other routes that know a session refuse it. */
    whileImpersonating?: boolean
  }
}

export type AuthAccess = {
  /** Only with a live session. */
  readonly signedIn: Access
  /** Open to all; a session is recognised when there is one. */
  readonly known: Access
  /** Only with a live session; the verb demands a proof within `session.fresh_age` or less of it (demands.ts). */
  readonly fresh: Access
  /** Only for users with a role that allows this (auth.md 10). */
  admin(permission: AdminPermission): Access
  /** Only with an impersonated session. */
  readonly impersonating: Access
  /** As `known` where there are anonymous users, who may add a way in so; else open, and no session is looked at. */
  readonly knownIfAnonymous: Access
  /** With a live session, or without when `session_management.require_authentication` is off. */
  readonly signedInIfRequired: Access
  /** The same; a session that the browser keeps besides is enough. The route looks at those (auth/multi-session/). */
  readonly signedInOrKept: Access
}

const SECURITY = [{ sessionToken: [] }, { sessionCookie: [] }]
const SESSION_FAILURES = ['UNAUTHORIZED', 'TWO_FACTOR_REQUIRED', 'ANOTHER_USER', 'TOO_MANY_REQUESTS']

export function createAuthAccess(kernel: Kernel, sessions: Sessions): AuthAccess {
  const { config } = kernel
  /** Sets the caller. Returns the failure of a session that this route is closed to, which has no caller. */
  const identify = async (
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<'TWO_FACTOR_REQUIRED' | undefined> => {
    const presented = presentedToken(config, request)
    const found = presented && (await sessions.find(presented.token, request.clientAddress))
    if (found !== undefined) expectUser(request, found.user.id)
    if (found?.session.impersonatedBy != null) await expectOpenTo(kernel, found, request)
    // A page that may not use the cookie is refused later (protection.ts). It must not be sent the token before.
    const mayExtend = presented?.by !== 'cookie' || beyondReach(kernel, request) === undefined
    const rolled =
      found &&
      (mayExtend ? await sessions.roll(found, presented.token) : { live: found, lifetime: undefined })
    if (rolled?.lifetime !== undefined && presented?.by === 'cookie') {
      const { live, lifetime } = rolled
      setSessionToken(config, reply, presented.token, lifetime)
      keepSession(config, reply, { userId: live.user.id, token: presented.token }, lifetime)
    }
    const live = rolled?.live
    clearDeadCookies(config, reply, presented, live?.session)
    if (live === undefined || presented === undefined) return
    const { withoutSecondFactor = false, enrols = false } = request.routeOptions.config
    const isOpen = withoutSecondFactor || !lacksSecondFactor(config, live)
    if (!isOpen && !(enrols && (await mayEnrol(kernel, live.session)))) return 'TWO_FACTOR_REQUIRED'
    const mustHaveFactor = !withoutSecondFactor && !enrols
    request.knownCaller = { ...live, token: presented.token, mustHaveFactor }
  }
  const signedIn: Access = {
    name: 'signed in',
    security: SECURITY,
    failures: SESSION_FAILURES,
    async authorize(request, reply) {
      const refused = await identify(request, reply)
      if (request.knownCaller !== undefined) return
      // Counted for GET too: the token may be a guess.
      await kernel.limits.consume('default', request.clientAddress)
      if (refused !== undefined) throw fail(refused)
      throw fail('UNAUTHORIZED')
    },
  }
  const known: Access = {
    name: 'open (knows a session)',
    security: [...SECURITY, {}],
    failures: ['ANOTHER_USER'],
    authorize: async (request, reply) => void (await identify(request, reply)),
  }
  const fresh: Access = {
    name: 'signed in recently',
    security: SECURITY,
    failures: [...SESSION_FAILURES, 'SESSION_NOT_FRESH', 'USER_IS_ANONYMOUS'],
    authorize: signedIn.authorize,
  }
  const admin = (permission: AdminPermission): Access => ({
    name: `admin with ${permissionText(permission.permissions)}`,
    security: SECURITY,
    failures: [...SESSION_FAILURES, permission.refusal],
    async authorize(request, reply) {
      await signedIn.authorize(request, reply)
      if (!isPermitted(kernel, request.caller.user, permission.permissions)) throw fail(permission.refusal)
    },
  })
  const impersonating: Access = {
    name: 'impersonating',
    security: SECURITY,
    failures: [...SESSION_FAILURES, 'YOU_ARE_NOT_IMPERSONATING_ANYONE'],
    async authorize(request, reply) {
      await signedIn.authorize(request, reply)
      if (request.caller.session.impersonatedBy === null) throw fail('YOU_ARE_NOT_IMPERSONATING_ANYONE')
    },
  }
  const signedInOrKept: Access = {
    ...signedIn,
    authorize: (request, reply) =>
      (keptSessions(config, request).length > 0 ? known : signedIn).authorize(request, reply),
  }
  const { require_authentication } = config.auth.session_management
  return {
    signedIn: renewing(signedIn),
    known,
    fresh: renewing(fresh),
    admin: (permission) => renewing(admin(permission)),
    impersonating: renewing(impersonating),
    knownIfAnonymous: config.auth.anonymous.enabled ? known : open,
    signedInIfRequired: renewing(require_authentication ? signedIn : known),
    signedInOrKept: renewing(require_authentication ? signedInOrKept : known),
  }
}

/** Refuses an impersonated session that the route is not open to. */
async function expectOpenTo(kernel: Kernel, live: LiveSession, request: FastifyRequest): Promise<void> {
  if (request.routeOptions.config.whileImpersonating === true) return
  const refusal = fail('NOT_WHILE_IMPERSONATING')
  const act = { action: 'impersonated_act.failed', reason: refusal.code } as const
  await recordRefusedAct(kernel, request, live, act)
  throw refusal
}

/**
 * Judges the session again once the body has arrived, which may have taken as long as the caller liked (house.md 5.7). Then no route that
 * requires a session answers on one that has ended meanwhile. It costs no query while the session is in memory.
 */
const renewing = (access: Access): Access => ({
  ...access,
  async renew(request, reply) {
    request.knownCaller = undefined
    await access.authorize(request, reply)
  },
})

/** The `preHandler` hook for it. An empty body may end late, too. With access `known` the verb states its proof by itself. */
export async function renewCaller(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (!isGet(request)) await request.routeOptions.config.access?.renew?.(request, reply)
}

/** For `request.caller`. */
export function callerOf({ knownCaller, routeOptions }: FastifyRequest): Caller {
  if (knownCaller === undefined) throw new Error(`${routeOptions.url} has no caller: its access is wrong`)
  return knownCaller
}

/** The authority of the caller's session. */
export const bySession = (caller: Caller): Authority => ({
  ...proofOf(caller),
  refuse: () => fail('UNAUTHORIZED'),
  async may(kernel, user) {
    // An impersonated session is judged by its admin's, as it was when the request came.
    const isJudged = caller.mustHaveFactor === true && caller.session.impersonatedBy === null
    if (isJudged && (await isRestricted(kernel, user, caller.session))) throw fail('TWO_FACTOR_REQUIRED')
  },
})

/** Throws when the session has ended since the request was authorized. For answers that tell something and change nothing. */
export async function expectAlive(kernel: Kernel, caller: Caller): Promise<void> {
  if (!(await proofHolds(kernel, proofOf(caller)))) throw fail('UNAUTHORIZED')
}

export const proofOf = ({
  user,
  session: { id, impersonatedBy },
  token,
  password,
}: Caller): SessionProof => ({
  userId: user.id,
  session: { id, token, impersonatedBy },
  password,
})
