import type { CookieSerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Session } from '#identity/sessions.ts'
import { isTokenShaped, tokenHash } from '#identity/tokens.ts'
import type { Config } from '#kernel/config/config.ts'
import {
  CONSOLE_COOKIE,
  COOKIE_PREFIX,
  HEADER,
  MULTI_SESSION,
  type SIDE_COOKIES,
} from '#kernel/http/header-names.ts'
import type { PresentedToken } from '#kernel/http/presented-token.ts'
import { asksToOperate, sessionCookieName } from '#kernel/http/session-cookie.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** A page of another origin asks to operate, by a token in a header. It changes no cookie of the console. */
    isBeyondConsole: boolean
  }
}

const options = ({ session }: Config): CookieSerializeOptions => ({
  path: '/',
  secure: session.cookie_secure,
  httpOnly: session.cookie_http_only,
  sameSite: session.cookie_same_site.toLowerCase() as 'lax' | 'strict' | 'none', // the setting's three values
})

/** Of the console, whose pages have the origin of the service: no setting makes them weaker than it needs. */
const consoleOptions = ({ session, server }: Config): CookieSerializeOptions => ({
  path: '/',
  secure: session.cookie_secure || server.public_url?.startsWith('https:') === true,
  httpOnly: true,
  sameSite: 'strict',
})

/** The session cookie that the request is about, the application's or the console's. */
const sessionCookie = (config: Config, request: FastifyRequest) => ({
  name: sessionCookieName(config, request),
  attributes: asksToOperate(request) ? consoleOptions(config) : options(config),
})

/** Milliseconds; undefined: the cookie lasts until the browser closes. */
type Lifetime = number | undefined

/** Of the cookie of a session. */
export const cookieAge = (
  { now }: Pick<Kernel, 'now'>,
  { remembered, expiresAt }: Pick<Session, 'remembered' | 'expiresAt'>,
): Lifetime => (remembered ? expiresAt.getTime() - now().getTime() : undefined)

const lasting = (lifetime: Lifetime): CookieSerializeOptions =>
  lifetime === undefined ? {} : { maxAge: Math.floor(lifetime / 1_000) }

/** A cookie beside that of the session. Scripts cannot read it. */
type SideCookie = {
  set(config: Config, reply: FastifyReply, value: string, lifetime: Lifetime): void
  /** If the request has sent it. */
  clear(config: Config, reply: FastifyReply): void
  of(request: FastifyRequest): string | undefined
}

/** `ofSession`: it belongs to a session cookie, so that the console has one of its own. */
function sideCookie(
  shortName: (typeof SIDE_COOKIES)[number],
  { ofSession = false, ...more }: CookieSerializeOptions & { readonly ofSession?: boolean } = {},
): SideCookie {
  const isOfConsole = (request: FastifyRequest) => ofSession && asksToOperate(request)
  const nameFor = (request: FastifyRequest) =>
    `${isOfConsole(request) ? CONSOLE_COOKIE : COOKIE_PREFIX}.${shortName}`
  const attributes = (config: Config, request: FastifyRequest) =>
    isOfConsole(request) ? consoleOptions(config) : { ...options(config), httpOnly: true, ...more }
  const of = (request: FastifyRequest) => request.cookies[nameFor(request)]
  return {
    of,
    set(config, reply, value, lifetime) {
      const { request } = reply
      if (request.isBeyondConsole && isOfConsole(request)) return
      reply.setCookie(nameFor(request), value, { ...attributes(config, request), ...lasting(lifetime) })
    },
    clear(config, reply) {
      const { request } = reply
      if (of(request) !== undefined) reply.clearCookie(nameFor(request), attributes(config, request))
    },
  }
}

/** The admin's own token, while the session cookie has that of an impersonated session. */
export const ADMIN_COOKIE = sideCookie('admin-session', { ofSession: true })

/** A sign-in that waits for its second factor. */
export const PENDING_COOKIE = sideCookie('two-factor', { ofSession: true })

/** A browser that needs no second factor. */
export const TRUSTED_DEVICE_COOKIE = sideCookie('trusted-device')

/** A browser that has signed in before (decision 51). Clients without cookies get and send a header. */
const KNOWN_DEVICE = sideCookie('known-device')
export const KNOWN_DEVICE_COOKIE: SideCookie = {
  ...KNOWN_DEVICE,
  of(request) {
    const sent = request.headers[HEADER.knownDevice]
    return typeof sent === 'string' ? sent : KNOWN_DEVICE.of(request)
  },
}

/** The browser in which a password was set or shown, for as long as the link of that time is valid. */
export const BROWSER_COOKIE = sideCookie('sign-up', { sameSite: 'lax' })

/** The browser that has asked for a code by mail: it has tries of its own. */
export const CODE_COOKIE = sideCookie('mail-code')

/** The form in which a ticket keeps the value of one of these two cookies. */
export const browserMark = (cookie: string): string => tokenHash(cookie).toString('base64url')

/** Names the challenge that a passkey has to sign. */
export const PASSKEY_COOKIE = sideCookie('passkey')

/** The browser in which a visit to a provider began. Lax, since the way back is a redirect from another site. */
export const STATE_COOKIE = sideCookie('state', { sameSite: 'lax' })

/**
 * Sends a session token in header and cookie, and ends the impersonation of this browser: the caller that begins one sets the admin's token
 * after this.
 */
export function setSessionToken(
  config: Config,
  reply: FastifyReply,
  token: string,
  lifetime: Lifetime,
): void {
  const { name, attributes } = sessionCookie(config, reply.request)
  reply.header(HEADER.authToken, token)
  if (reply.request.isBeyondConsole) return
  reply.setCookie(name, token, { ...attributes, ...lasting(lifetime) })
  ADMIN_COOKIE.clear(config, reply)
}

/** Clears the admin's own token too, which means nothing without the impersonated session. */
export function clearSessionToken(config: Config, reply: FastifyReply): void {
  if (reply.request.isBeyondConsole) return
  const { name, attributes } = sessionCookie(config, reply.request)
  reply.clearCookie(name, attributes)
  ADMIN_COOKIE.clear(config, reply)
}

/** Clears the cookies that mean nothing with this session, or without one. With a token in a header the cookies were not looked at. */
export function clearDeadCookies(
  config: Config,
  reply: FastifyReply,
  presented: PresentedToken | undefined,
  session: { readonly impersonatedBy: string | null } | undefined,
): void {
  if (presented?.by === 'header' || session?.impersonatedBy != null) return
  if (presented !== undefined && session === undefined) {
    clearSessionToken(config, reply)
    const { token } = presented
    for (const kept of keptSessions(config, reply.request))
      if (kept.token === token) forgetKept(config, reply, kept)
  } else ADMIN_COOKIE.clear(config, reply)
}

/** A session that a browser keeps, beside that of the session cookie: its token in a cookie of its own, one for each user. */
export type KeptSession = { readonly userId: string; readonly token: string }

const keptName = ({ session }: Config, userId: string): string =>
  `${session.cookie_name}${MULTI_SESSION}${userId}`

/** The sessions that the browser keeps, at most `maximum_sessions`. None with `multi_session.enabled: false`, and none of the console. */
export function keptSessions(config: Config, request: FastifyRequest): readonly KeptSession[] {
  const { enabled, maximum_sessions } = config.auth.multi_session
  if (!enabled || asksToOperate(request)) return []
  const prefix = keptName(config, '')
  return Object.entries(request.cookies)
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, token = '']) => ({ userId: name.slice(prefix.length), token }))
    .filter(({ userId, token }) => UUID.test(userId) && isTokenShaped(token))
    .slice(0, maximum_sessions)
}

/** Keeps a session in place of an older one of the same user. Beyond `maximum_sessions` it is the session of the browser, and not kept. */
export function keepSession(
  config: Config,
  reply: FastifyReply,
  { userId, token }: KeptSession,
  lifetime: Lifetime,
): void {
  const { enabled, maximum_sessions } = config.auth.multi_session
  if (!enabled || asksToOperate(reply.request)) return
  const others = keptSessions(config, reply.request).filter((kept) => kept.userId !== userId)
  if (others.length >= maximum_sessions) return
  reply.setCookie(keptName(config, userId), token, {
    ...{ ...options(config), httpOnly: true },
    ...lasting(lifetime),
  })
}

export const forgetKept = (
  config: Config,
  reply: FastifyReply,
  { userId }: Pick<KeptSession, 'userId'>,
): void => void reply.clearCookie(keptName(config, userId), { ...options(config), httpOnly: true })

/**
 * Tells the application how this browser has last begun to sign in: its pages read it. `method`: `email`, `passkey` or a provider's name.
 * Not of the console.
 */
export function noteLoginMethod({ config }: Kernel, reply: FastifyReply, method: string): void {
  const { enabled, cookie_name, max_age } = config.auth.last_login_method
  if (enabled && !asksToOperate(reply.request))
    reply.setCookie(cookie_name, method, { ...options(config), ...lasting(max_age), httpOnly: false })
}
