/** The cause of an act, for the audit trail. A kernel carries it, so that no verb has to pass it on. */
export type Origin = {
  /** The id of a user, `key:` and the id of an API key, `jwt:` and a user of another issuer, or one of the words below. */
  readonly actorId: string
  /** The user whom the actor impersonates. */
  readonly onBehalfOf?: string | undefined
  readonly ipAddress?: string | undefined
  readonly userAgent?: string | undefined
  readonly requestId?: string | undefined
}

/** Jobs, and all else that no caller asked for. The kernel of a started process has it. */
export const SYSTEM: Origin = { actorId: 'system' }
/** The command line. */
export const CLI: Origin = { actorId: 'cli' }
/** The static admin key of the gateway. */
export const ADMIN_KEY = 'admin-key'
/** In front of a user whom a JWT of another issuer names. */
export const OF_ISSUER = 'jwt:'
/** A request without credentials, or with wrong ones. */
export const ANONYMOUS = 'anonymous'
