import type { FastifyReply, FastifyRequest } from 'fastify'
import { crossSite } from '#kernel/http/origins.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { BROWSER_COOKIE, KNOWN_DEVICE_COOKIE, TRUSTED_DEVICE_COOKIE } from './cookies.ts'

/** Where a sign-in comes from, and how long its session is to last. */
export type SignInContext = {
  readonly ipAddress: string
  readonly userAgent: string | undefined
  /** False: the session ends after a day and is not extended. */
  readonly remember: boolean
  /** The request comes from a page of another origin. Following a link then starts no session. */
  readonly isCrossSite: boolean
  /** Where the link of a verification mail leads in the end, if one has to be sent first. */
  readonly callbackURL: string | undefined
  /** The browser's cookie that stands in for a second factor. */
  readonly trustedDevice: string | undefined
  /** The browser's cookie, or the client's header, that tells a browser which has signed in before from a stranger's. */
  readonly knownDevice: string | undefined
  /** Sets a cookie in the browser. A mailed link that is opened with this cookie was opened where the password was shown. */
  markBrowser(mark: string): void
}

export const signInContextOf = (
  kernel: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
  { rememberMe = true, callbackURL }: { rememberMe?: boolean; callbackURL?: string } = {},
): SignInContext => ({
  ipAddress: request.clientAddress,
  userAgent: request.headers['user-agent'],
  remember: rememberMe,
  isCrossSite: crossSite(kernel, request.headers) !== undefined,
  callbackURL,
  trustedDevice: TRUSTED_DEVICE_COOKIE.of(request),
  knownDevice: KNOWN_DEVICE_COOKIE.of(request),
  markBrowser: (mark) =>
    BROWSER_COOKIE.set(kernel.config, reply, mark, kernel.config.auth.email.verification_expires_in),
})
