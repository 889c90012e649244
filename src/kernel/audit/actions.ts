/** The kinds of things that an act changes. The row of an act has the id of one of them. */
type Target = 'user' | 'organization' | 'api_key' | 'client' | 'database'

/**
 * All acts of the audit trail, and what each acts on. An act on something that belongs to a user (session, password, passkey) has that
 * user as its target, so that a listing by `targetId` shows all that happened to the account; `details` has the id of the thing. A test
 * causes each one (test/audit/).
 */
export const ACTIONS = {
  'user.banned': 'user',
  'session.revoked': 'user',
} as const satisfies Readonly<Record<string, Target>>

export type Action = keyof typeof ACTIONS
