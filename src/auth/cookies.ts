import type { CookieSerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { tokenHash } from '#identity/tokens.ts'
import type { Config } from '#kernel/config/config.ts'
import { bearerOf } from '#kernel/http/bearer.ts'
import { COOKIE_PREFIX, HEADER } from '#kernel/http/header-names.ts'

const options = ({ session }: Config): CookieSerializeOptions => ({
  path: '/',
  secure: session.cookie_secure,
  httpOnly: session.cookie_http_only,
  sameSite: session.cookie_same_site.toLowerCase() as 'lax' | 'strict' | 'none', // the setting's three values
})

/**
 * Sends a session token in header and cookie, and ends the impersonation of this browser: the caller that begins one sets the admin's token
 * after this. `maxAge` in milliseconds; without it the cookie lasts until the browser closes. */
export function setSessionToken(
  config: Config,
  reply: FastifyReply,
  token: string,
  maxAge: number | undefined,
): void {
  reply.header(HEADER.authToken, token)
  reply.setCookie(config.session.cookie_name, token, {
    ...options(config),
    ...(maxAge === undefined ? {} : { maxAge: Math.floor(maxAge / 1_000) }),
  })
  clearAdminToken(config, reply)
}

/** Clears the admin's own token too, which means nothing without the impersonated session. */
export function clearSessionToken(config: Config, reply: FastifyReply): void {
  reply.clearCookie(config.session.cookie_name, options(config))
  clearAdminToken(config, reply)
}

export type Presented = { readonly token: string; readonly by: 'bearer' | 'cookie' }

/** The session token of a request. When header and cookie differ, the header wins. */
export function presentedToken(config: Config, request: FastifyRequest): Presented | undefined {
  const bearer = bearerOf(request)
  if (bearer !== undefined) return { token: bearer, by: 'bearer' }
  const cookie = request.cookies[config.session.cookie_name]
  return cookie === undefined || cookie === '' ? undefined : { token: cookie, by: 'cookie' }
}

/** Clears the cookies that mean nothing with this session, or without one. With a Bearer token the cookies were not looked at. */
export function clearDeadCookies(
  config: Config,
  reply: FastifyReply,
  presented: Presented | undefined,
  session: { readonly impersonatedBy: string | null } | undefined,
): void {
  if (presented?.by === 'bearer' || session?.impersonatedBy != null) return
  if (presented !== undefined && session === undefined) clearSessionToken(config, reply)
  else clearAdminToken(config, reply)
}

/** The admin's own token, while the session cookie has that of an impersonated session. */
const ADMIN_COOKIE = `${COOKIE_PREFIX}.admin-session`

export function setAdminToken(
  config: Config,
  reply: FastifyReply,
  token: string,
  maxAge: number | undefined,
): void {
  reply.setCookie(ADMIN_COOKIE, token, {
    ...options(config),
    httpOnly: true,
    ...(maxAge === undefined ? {} : { maxAge: Math.floor(maxAge / 1_000) }),
  })
}

export const presentedAdminToken = (request: FastifyRequest): string | undefined =>
  request.cookies[ADMIN_COOKIE]

function clearAdminToken(config: Config, reply: FastifyReply): void {
  if (presentedAdminToken(reply.request) !== undefined)
    reply.clearCookie(ADMIN_COOKIE, { ...options(config), httpOnly: true })
}

/** Cookies of the second factor: the pending sign-in, and the browser that needs none. Scripts have no use for either. */
const PENDING_COOKIE = `${COOKIE_PREFIX}.two-factor`
const TRUSTED_DEVICE_COOKIE = `${COOKIE_PREFIX}.trusted-device`

/** `maxAge` in milliseconds. */
function setHidden(
  config: Config,
  reply: FastifyReply,
  name: string,
  value: string,
  maxAge: number | undefined,
): void {
  reply.setCookie(name, value, {
    ...{ ...options(config), httpOnly: true },
    ...(maxAge === undefined ? {} : { maxAge: Math.floor(maxAge / 1_000) }),
  })
}

export function setPendingSecondFactor(
  config: Config,
  reply: FastifyReply,
  token: string,
  maxAge: number,
): void {
  setHidden(config, reply, PENDING_COOKIE, token, maxAge)
}

export function clearPendingSecondFactor(config: Config, reply: FastifyReply): void {
  if (presentedPendingSecondFactor(reply.request) !== undefined)
    reply.clearCookie(PENDING_COOKIE, { ...options(config), httpOnly: true })
}

export const presentedPendingSecondFactor = (request: FastifyRequest): string | undefined =>
  request.cookies[PENDING_COOKIE]

export function setTrustedDevice(config: Config, reply: FastifyReply, token: string, maxAge: number): void {
  setHidden(config, reply, TRUSTED_DEVICE_COOKIE, token, maxAge)
}

export function clearTrustedDevice(config: Config, reply: FastifyReply): void {
  reply.clearCookie(TRUSTED_DEVICE_COOKIE, { ...options(config), httpOnly: true })
}

export const presentedTrustedDevice = (request: FastifyRequest): string | undefined =>
  request.cookies[TRUSTED_DEVICE_COOKIE]

/** A browser that has signed in before (decision 51). Clients without cookies get and send a header. */
const KNOWN_DEVICE_COOKIE = `${COOKIE_PREFIX}.known-device`

/** `maxAge` in milliseconds; without it the cookie lasts until the browser closes. */
export function setKnownDevice(
  config: Config,
  reply: FastifyReply,
  value: string,
  maxAge: number | undefined,
): void {
  setHidden(config, reply, KNOWN_DEVICE_COOKIE, value, maxAge)
}

export function presentedKnownDevice({ headers, cookies }: FastifyRequest): string | undefined {
  const sent = headers[HEADER.knownDevice]
  return typeof sent === 'string' ? sent : cookies[KNOWN_DEVICE_COOKIE]
}

/** Marks the browser in which a password was set or shown, for as long as the link of that time is valid. */
const BROWSER_COOKIE = `${COOKIE_PREFIX}.sign-up`

/** The form in which a ticket keeps the value of that cookie. */
export const browserMark = (cookie: string): string => tokenHash(cookie).toString('base64url')

export function markBrowser(config: Config, reply: FastifyReply, mark: string): void {
  const maxAge = Math.floor(config.auth.email.verification_expires_in / 1_000)
  reply.setCookie(BROWSER_COOKIE, mark, { ...options(config), httpOnly: true, sameSite: 'lax', maxAge })
}

export const presentedBrowser = (request: FastifyRequest): string | undefined =>
  request.cookies[BROWSER_COOKIE]

/** Names the challenge that a passkey has to sign. */
const PASSKEY_COOKIE = `${COOKIE_PREFIX}.passkey`

/** `maxAge` in milliseconds. */
export function setPasskeyChallenge(config: Config, reply: FastifyReply, id: string, maxAge: number): void {
  reply.setCookie(PASSKEY_COOKIE, id, {
    ...options(config),
    httpOnly: true,
    maxAge: Math.floor(maxAge / 1_000),
  })
}

export function clearPasskeyChallenge(config: Config, reply: FastifyReply): void {
  reply.clearCookie(PASSKEY_COOKIE, { ...options(config), httpOnly: true })
}

export const presentedPasskeyChallenge = (request: FastifyRequest): string | undefined =>
  request.cookies[PASSKEY_COOKIE]

/** Marks the browser in which a visit to a provider began. Lax, since the way back is a redirect from another site. */
const STATE_COOKIE = `${COOKIE_PREFIX}.state`

/** `maxAge` in milliseconds. */
export function setStateCookie(config: Config, reply: FastifyReply, mark: string, maxAge: number): void {
  reply.setCookie(STATE_COOKIE, mark, {
    ...options(config),
    ...{ httpOnly: true, sameSite: 'lax', maxAge: Math.floor(maxAge / 1_000) },
  })
}

export const presentedState = (request: FastifyRequest): string | undefined => request.cookies[STATE_COOKIE]
