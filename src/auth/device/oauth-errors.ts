import type { FastifyContextConfig } from 'fastify'
import type { Failure } from '#kernel/errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Failures of the route also have the members of OAuth 2.0 (RFC 6749, 5.2). */
    oauthErrors?: boolean
  }
}

/** Codes of ours that OAuth 2.0 (RFC 6749, 5.2; RFC 8628, 3.5) or better-auth spells otherwise. */
const WORDS: Readonly<Record<string, string>> = {
  validation_error: 'invalid_request',
  invalid_json: 'invalid_request',
  invalid_text: 'invalid_request',
  POLLING_TOO_FREQUENTLY: 'slow_down',
  REFUSED_BY_HOOK: 'access_denied',
  HOOK_UNAVAILABLE: 'temporarily_unavailable',
  INVALID_DEVICE_CODE: 'invalid_grant',
  EXPIRED_DEVICE_CODE: 'expired_token',
  EXPIRED_USER_CODE: 'expired_token',
  INVALID_USER_CODE: 'invalid_request',
  DEVICE_CODE_ALREADY_PROCESSED: 'invalid_request',
}

/** Further members of the envelope; none on other routes. */
export const oauthMembers = (
  { code, message }: Failure,
  { oauthErrors }: FastifyContextConfig,
): { readonly error?: string; readonly error_description?: string } =>
  oauthErrors === true ? { error: WORDS[code] ?? code.toLowerCase(), error_description: message } : {}
