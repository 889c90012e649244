import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyRequest, RouteOptions } from 'fastify'
import { emailFrom } from '#identity/emails.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { isGet } from '#kernel/http/methods.ts'
import { beyondReach, redirectTarget } from '#kernel/http/origins.ts'
import { presentedToken } from '#kernel/http/presented-token.ts'
import { asksToOperate } from '#kernel/http/session-cookie.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { expectCaptcha } from '../captcha/captcha.ts'
import { ADMISSION_FAILURES, CAPTCHA_FAILURES, fail } from '../errors.ts'
import { keptSessions, PENDING_COOKIE } from './cookies.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route can start a session, so pages of foreign origins may not call it, with a cookie or without. */
    startsSession?: boolean
    /** Pages of every origin may call the route, which does nothing by itself. */
    anyOrigin?: boolean
    /**
     * Whether a caller without a session has to solve a captcha, where there is one. Every route that sends mail or adds users and needs no
     * session says so: false if it needs a link, a code, a provider's answer or a pending sign-in, which began at a route that asks.
     */
    captcha?: boolean
    /**
     * A caller with a session has to solve it too: else one session would add any number of users. `for others`: unless `email` of the body is
     * the caller's own, since nobody is added by a mail to that.
     */
    captchaInSession?: boolean | 'for others'
    /** The route hashes a password. While the queue of hashes is full it is refused first of all, so that a flood costs the database nothing. */
    hashes?: boolean
  }
}

/** Rules of every route of the surface (auth.md 11): origins, rate limits and redirect targets. */
export function protect(app: App, kernel: Kernel): void {
  app.addHook('onRoute', (route) => {
    const asked = route.config?.captcha === true && kernel.config.auth.captcha.provider !== undefined
    const failures = [
      ...(route.config?.failures ?? []),
      ...refusalsOf(route),
      ...(asked ? CAPTCHA_FAILURES : []),
    ]
    route.config = { ...route.config, failures }
  })
  const expectRoomToHash = createRoomCheck(kernel)
  app.decorateRequest('isBeyondConsole', false)
  app.addHook('onRequest', async function protectRoute(request) {
    checkOrigin(kernel, request)
    const { limit, hashes } = request.routeOptions.config
    if (hashes === true) await expectRoomToHash()
    if (limit !== undefined) await kernel.limits.consume(limit, request.clientAddress)
    // Reads with a valid credential are not counted; others may be guesses.
    else if (!isGet(request) || request.knownCaller === undefined)
      await kernel.limits.consume('default', request.clientAddress)
  })
  app.addHook('preHandler', async function judgeTargets({ query, body, routeOptions }) {
    const { redirects = [] } = routeOptions.config
    for (const part of [query, body]) judgeRedirects(kernel, redirects, part)
  })
  if (kernel.config.auth.captcha.provider === undefined) return
  // After the body is judged, so that a mistake in a form does not cost its solution.
  app.addHook('preHandler', async function askCaptcha(request) {
    const { routeOptions, headers, clientAddress: address } = request
    if (routeOptions.config.captcha !== true || isSpared(request)) return
    await expectCaptcha(kernel, { response: headers[HEADER.captcha], address })
  })
}

/** Of the captcha: a caller whose session is enough. */
function isSpared({ knownCaller, routeOptions, body }: FastifyRequest): boolean {
  const { captchaInSession = false } = routeOptions.config
  if (knownCaller === undefined || captchaInSession === true) return false
  if (captchaInSession === false) return true
  const { email } = Object(body) as { email?: unknown } // a parsed body
  return typeof email === 'string' && emailFrom(email) === knownCaller.user.email
}

/** The longest, milliseconds; the shortest is half of it, which is what Retry-After says. */
const PAUSE = 2_000
/** Refusals that may wait at once, which bounds their memory. */
const MAX_PAUSED = 1_000

/**
 * Refuses while the queue of hashes is full, after a pause: callers who do not heed Retry-After would else ask again some hundred times a second
 * each, and all other requests would wait in line with theirs. The pauses differ, since callers who came at once would else come back at once.
 */
function createRoomCheck({ hashQueue, random }: Kernel): () => Promise<void> {
  let paused = 0
  return async () => {
    try {
      hashQueue.expectRoom()
    } catch (refusal) {
      if (paused >= MAX_PAUSED) throw refusal
      paused++
      const [byte = 0] = random(1)
      await sleep(PAUSE * (1 - byte / 512))
      paused--
      throw refusal
    }
  }
}

/** The failures of these rules, for the API reference. */
function refusalsOf({ method, config }: RouteOptions): readonly string[] {
  const {
    access,
    redirects = [],
    startsSession = false,
    whileImpersonating = false,
    anyOrigin = false,
  } = config ?? {}
  const knowsSession = (access?.security.length ?? 0) > 0
  return [
    ...(knowsSession && !whileImpersonating ? ['NOT_WHILE_IMPERSONATING'] : []),
    ...(startsSession ? ADMISSION_FAILURES : []),
    // A GET is refused its cookie when it asks to operate.
    ...(anyOrigin || (method === 'GET' && !knowsSession) ? [] : ['INVALID_ORIGIN', 'MISSING_OR_NULL_ORIGIN']),
    ...(redirects.length > 0 ? ['INVALID_CALLBACK_URL'] : []),
    'TOO_MANY_REQUESTS',
  ]
}

/** Replaces each redirect target by the form that was judged, so that handlers store and send nothing else. */
function judgeRedirects(kernel: Kernel, names: readonly string[], part: unknown): void {
  if (typeof part !== 'object' || part === null) return
  const given = part as Record<string, unknown> // a parsed query or body
  for (const name of names) {
    if (given[name] === undefined || given[name] === null) continue
    const judged = typeof given[name] === 'string' ? redirectTarget(kernel, given[name]) : undefined
    if (judged === undefined)
      throw fail('INVALID_CALLBACK_URL', { message: `${name} must be a path or a URL of a trusted origin` })
    given[name] = judged
  }
}

function checkOrigin(kernel: Kernel, request: FastifyRequest): void {
  if (request.routeOptions.config.anyOrigin === true) return
  const from = beyondReach(kernel, request)
  request.isBeyondConsole = from === 'foreign' && asksToOperate(request)
  if (from === undefined) return
  const presented = presentedToken(kernel.config, request)
  const byOtherCookie = () =>
    PENDING_COOKIE.of(request) !== undefined || keptSessions(kernel.config, request).length > 0
  const byCookie = presented?.by === 'cookie' || (presented === undefined && byOtherCookie())
  const startsSession =
    request.routeOptions.config.startsSession === true && request.headers.origin !== undefined
  if (!byCookie && !startsSession) return
  throw fail(from === 'foreign' ? 'INVALID_ORIGIN' : 'MISSING_OR_NULL_ORIGIN')
}
