/** Header names of the interface, in lower case as Node provides them. */
export const HEADER = {
  client: 'x-service-client',
  apiKey: 'apikey',
  apiKeyAlias: 'x-api-key',
  serviceKey: 'x-service-key',
  adminKey: 'x-service-admin-key',
  stripNulls: 'x-strip-nulls',
  insertWindow: 'x-service-insert-window',
  idempotencyKey: 'idempotency-key',
  cache: 'x-service-cache',
  events: 'x-service-events',
  count: 'x-service-count',
  requestId: 'x-request-id',
  serviceSession: 'x-service-session',
  expectedUser: 'x-service-expected-user',
  userHint: 'x-user-id',
  organizationHint: 'x-organization-id',
  companyHint: 'x-company-id',
  captcha: 'x-captcha-response',
  authToken: 'set-auth-token',
  authJwt: 'set-auth-jwt',
  knownDevice: 'x-service-known-device',
  sessionToken: 'x-service-auth-session-token',
  sessionBearer: 'x-service-auth-bearer-token',
  projectUrl: 'x-supabase-url',
  projectKey: 'x-supabase-key',
  retryAfter: 'x-retry-after',
} as const

/** The spelling of documents and messages: `X-Service-Client`. */
export const shownHeader = (name: string): string =>
  name.replaceAll(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase())

/** Cookies besides the session's begin with this. */
export const COOKIE_PREFIX = 'service-auth'

/** The session cookie of requests with `x-service-session: 1`, where `server.public_url` is not https. */
export const CONSOLE_COOKIE = `${COOKIE_PREFIX}.console`

/** The same under https. Browsers take this prefix from a secure page of the same host alone (RFC 6265bis section 4.1.3.2). */
export const SECURE_CONSOLE_COOKIE = `__Host-${CONSOLE_COOKIE}`

/** Cookies beside a session's: the browser's, or of a sign-in that has begun. Some of them the console has too. */
export const SIDE_COOKIES = [
  'admin-session',
  'two-factor',
  'trusted-device',
  'known-device',
  'sign-up',
  'mail-code',
  'passkey',
  'state',
] as const

/** Between the name of the session cookie and the id of a user whose session the browser keeps. */
export const MULTI_SESSION = '_multi-'
