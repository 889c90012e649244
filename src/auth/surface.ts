import type { JwtKeys } from '#identity/jwt/key-ring.ts'
import type { Sessions } from '#identity/live-sessions.ts'
import type { Feature } from '#kernel/http/document/operations.ts'
import type { RouteBook } from '#kernel/http/routes.ts'
import { type App, addFeature, configureSurface } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { accountRoutes } from './account/routes.ts'
import { adminAccountRoutes } from './admin/account-routes.ts'
import { adminConsoleRoutes } from './admin/console-routes.ts'
import { adminRoutes } from './admin/routes.ts'
import { anonymousRoutes } from './anonymous/routes.ts'
import { auditRoutes } from './audit/routes.ts'
import { captchaRoutes } from './captcha/routes.ts'
import { confirmRoutes } from './confirm/routes.ts'
import { answerCustomFields } from './custom-fields/answers.ts'
import { oauthMembers } from './device/oauth-errors.ts'
import { deviceRoutes } from './device/routes.ts'
import { type AuthAccess, callerOf, createAuthAccess, renewCaller } from './door/access.ts'
import { endTrust } from './door/end-trust.ts'
import { originOf } from './door/origin.ts'
import { protect } from './door/protection.ts'
import { recordRefusal } from './door/record-refused-act.ts'
import { emailRoutes } from './email/routes.ts'
import { emailOtpRoutes } from './email-otp/routes.ts'
import { AUTH_CODES, AUTH_FAILURES } from './errors.ts'
import { createTokens, type Tokens } from './jwt/jwt.ts'
import { jwtRoutes } from './jwt/routes.ts'
import { magicLinkRoutes } from './magic-link/routes.ts'
import { multiSessionRoutes } from './multi-session/routes.ts'
import { oneTimeTokenRoutes } from './one-time-token/routes.ts'
import { organizationRoutes } from './organization/routes.ts'
import { pageRoutes } from './pages/routes.ts'
import { passkeyRoutes } from './passkey/routes.ts'
import { passwordRoutes } from './password/routes.ts'
import { profileRoutes } from './profile/routes.ts'
import { reauthenticateRoutes } from './reauthenticate/routes.ts'
import { sessionRoutes } from './session/routes.ts'
import { signInRoutes } from './sign-in/routes.ts'
import { signUpRoutes } from './sign-up/routes.ts'
import { socialRoutes } from './social/routes.ts'
import { createSocialProviders, type SocialProviders } from './social/social-providers.ts'
import { twoFactorRoutes } from './two-factor/routes.ts'

/** The authentication surface. */
export function authSurface(
  app: App,
  kernel: Kernel,
  book: RouteBook,
  { sessions, jwtKeys }: AuthParts,
): void {
  configureSurface(app, kernel, book, {
    name: 'auth',
    nullIsAbsent: false,
    refusesMisspelt: false,
    parse: JSON.parse,
    originOf: (request) => originOf(request, request.knownCaller),
    codes: AUTH_CODES,
    envelope: (failure, request) => ({
      message: failure.message,
      code: failure.code.toUpperCase(),
      // Those of the HTTP edge are in the message here.
      ...(failure.code in AUTH_FAILURES && { details: failure.details }),
      ...oauthMembers(failure, request.routeOptions.config),
    }),
  })
  app.decorateRequest('knownCaller', undefined)
  app.decorateRequest('caller', {
    getter() {
      return callerOf(this)
    },
  })
  protect(app, kernel)
  app.addHook('preHandler', renewCaller)
  app.addHook('onError', (request, _reply, error) => recordRefusal(kernel, request, error))
  app.addHook('onError', (request, reply, error) => endTrust(kernel, request, reply, error))
  answerCustomFields(app, kernel.config)
  const access = createAuthAccess(kernel, sessions)
  const providers = createSocialProviders(kernel)
  const process = { sessions, providers, jwtKeys, tokens: createTokens(jwtKeys, sessions) }

  for (const { add, ...tag } of FEATURES) addFeature(app, tag, (app) => add(app, kernel, access, process))
}

/** A tag of the API reference, and its routes. */
type AuthFeature = Feature & {
  readonly add: (app: App, kernel: Kernel, access: AuthAccess, process: ProcessState) => void
}

/** Caches of this process, which both halves use. */
type AuthParts = { readonly sessions: Sessions; readonly jwtKeys: JwtKeys }

/** Caches of this process. */
type ProcessState = AuthParts & { readonly providers: SocialProviders; readonly tokens: Tokens }

const FEATURES: readonly AuthFeature[] = [
  { name: 'Sign-up', description: 'New users', add: signUpRoutes },
  {
    name: 'Sign-in',
    description: 'By email or username; the answer and the cookie carry a session token',
    add: signInRoutes,
  },
  {
    name: 'Sign-in by mail',
    description: 'Links and codes in mails, if `auth.magic_link` and `auth.email_otp` enable them',
    add(app, kernel, access) {
      magicLinkRoutes(app, kernel, access)
      emailOtpRoutes(app, kernel, access)
    },
  },
  {
    name: 'Anonymous sign-in',
    description: 'Users without an address, if `auth.anonymous` enables them',
    add: anonymousRoutes,
  },
  {
    name: 'Two-factor',
    description:
      'A second factor at sign-in: an authenticator app, codes by mail, backup codes, trusted devices',
    add: twoFactorRoutes,
  },
  {
    name: 'Sessions',
    description: 'The current session, and the others of the same user',
    add: (app, kernel, access, process) => sessionRoutes(app, kernel, access, process),
  },
  {
    name: 'Tokens',
    description: 'JSON web tokens of sessions, and the keys that verify them',
    add: (app, kernel, access, { jwtKeys: keys, tokens }) => jwtRoutes(app, kernel, access, { keys, tokens }),
  },
  {
    name: 'Multi-session',
    description: 'Sessions of several users in one browser',
    add: (app, kernel, access, { sessions }) => multiSessionRoutes(app, kernel, access, sessions),
  },
  {
    name: 'One-time token',
    description: 'A session begins another one in a browser or app of the user',
    add: oneTimeTokenRoutes,
  },
  {
    name: 'Reauthentication',
    description: 'What is sensitive demands a recent proof, which a session can show again',
    add: (app, kernel, access, { providers }) => reauthenticateRoutes(app, kernel, access, providers),
  },
  {
    name: 'Devices',
    description: 'Sessions for devices and programs without a browser (RFC 8628)',
    add: deviceRoutes,
  },
  {
    name: 'Captcha',
    description: 'Challenges of `auth.captcha`, if the provider is `altcha`',
    add: captchaRoutes,
  },
  { name: 'Email', description: 'Verifying and changing the address of a user', add: emailRoutes },
  {
    name: 'Password',
    description: 'Changing it, and choosing a new one when it is forgotten',
    add: passwordRoutes,
  },
  {
    name: 'Profile',
    description: 'Name, picture and username; deleting the own account',
    add: profileRoutes,
  },
  {
    name: 'Social',
    description: 'Sign-in with accounts of other services',
    add: (app, kernel, access, { providers }) => socialRoutes(app, kernel, access, providers),
  },
  { name: 'Accounts', description: 'The ways in which a user can sign in', add: accountRoutes },
  { name: 'Passkeys', description: 'Credentials of WebAuthn', add: passkeyRoutes },
  {
    name: 'Organizations',
    description: 'Organizations, their members and invitations, and the active organization of a session',
    add: organizationRoutes,
  },
  {
    name: 'Administration',
    description: 'Users, their roles, bans and sessions, and impersonation',
    add(app, kernel, access, { sessions }) {
      adminRoutes(app, kernel, access, sessions)
      adminAccountRoutes(app, kernel, access)
      adminConsoleRoutes(app, kernel, access)
    },
  },
  { name: 'Audit', description: 'The audit trail of both halves, for administrators', add: auditRoutes },
  {
    name: 'Pages',
    description: 'Liveness, and pages that browsers are sent to',
    add(app, kernel, access) {
      pageRoutes(app, kernel)
      confirmRoutes(app, kernel, access)
    },
  },
]
