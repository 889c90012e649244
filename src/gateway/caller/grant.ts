import type { GatewayRights } from '#identity/permissions.ts'
import type { OperatorRight } from '#kernel/config/sections/auth-admin.ts'
import type { ProvenKey } from '../keys/presented-key.ts'

/** Permissions of a request: all (admin key), the rights of its key or of its session's roles, or only operations that need no key. */
export type Grant =
  | { readonly kind: 'admin' }
  | ({ readonly kind: 'key' } & ProvenKey)
  | SessionGrant
  | { readonly kind: 'none' }

/** Of a session that operates (operating-session.ts). */
export type SessionGrant = {
  readonly kind: 'session'
  readonly userId: string
  /** The parts of the operator's routes that it opens. */
  readonly operator: readonly OperatorRight[]
  readonly gateway: GatewayRights
  /** It has shown a proof within ten minutes. */
  readonly isProven: boolean
  /** Names of the proofs that would be one, for the failure. */
  readonly accepts: readonly string[]
}
