/** The kinds of things that an act changes. The row of an act has the id of one of them. */
type Target =
  | 'user'
  | 'organization'
  | 'api_key'
  | 'client'
  | 'database'
  | 'webhook'
  | 'public_route'
  | 'backup'
  | 'jwt_key'

/**
 * All acts of the audit trail, and what each acts on. An act on something that belongs to a user (session, password, passkey) has that
 * user as its target, so that a listing by `targetId` shows all that happened to the account; `details` has the id of the thing. A test
 * causes each one (test/audit/).
 */
export const ACTIONS = {
  'user.created': 'user',
  'user.imported': 'user',
  'user.sign_up_hidden': 'user',
  'user.signed_in': 'user',
  'user.signed_out': 'user',
  'user.reauthenticated': 'user',
  'user.updated': 'user',
  'user.upgraded': 'user',
  'user.deleted': 'user',
  'user.banned': 'user',
  'user.unbanned': 'user',
  'user.role_changed': 'user',
  'user.impersonated': 'user',
  'user.impersonation_ended': 'user',
  'session.revoked': 'user',
  'email.change_requested': 'user',
  'email.changed': 'user',
  'email.verified': 'user',
  'password.set': 'user',
  'password.changed': 'user',
  'password.reset': 'user',
  'password.assigned': 'user',
  'account.linked': 'user',
  'account.unlinked': 'user',
  'passkey.added': 'user',
  'passkey.renamed': 'user',
  'passkey.removed': 'user',
  'second_factor.enabled': 'user',
  'second_factor.disabled': 'user',
  'backup_codes.replaced': 'user',
  'factors.reset': 'user',
  'device.approved': 'user',
  'device.denied': 'user',

  'sign_in.failed': 'user',
  'sign_up.failed': 'user',
  'token.failed': 'user',
  'password.failed': 'user',
  'second_factor.failed': 'user',
  'admin_act.failed': 'user',
  'impersonated_act.failed': 'user',
  'organization_act.failed': 'user',
  'operator_act.failed': 'user',

  'api_key.created': 'api_key',
  'api_key.updated': 'api_key',
  'api_key.rotated': 'api_key',
  'api_key.revoked': 'api_key',
  'enforcement.changed': 'client',
  'client.registered': 'client',
  'client.updated': 'client',
  'client.removed': 'client',
  'client.protected': 'client',
  'schema.changed': 'database',
  'rows.seen_as': 'user',
  'webhook.created': 'webhook',
  'webhook.updated': 'webhook',
  'webhook.removed': 'webhook',
  'webhook.secret_rotated': 'webhook',
  'webhook.deactivated': 'webhook',
  'webhook.tested': 'webhook',
  'webhook.delivery_retried': 'webhook',
  'webhook.deliveries_replayed': 'webhook',
  'public_route.created': 'public_route',
  'public_route.updated': 'public_route',
  'public_route.removed': 'public_route',
  'backup.requested': 'backup',
  'backup.cancelled': 'backup',
  'backup.downloaded': 'backup',
  'backup.deleted': 'backup',
  'restore.requested': 'backup',
  'installation.restored': 'backup',
  'jwt_key.created': 'jwt_key',
  'jwt_key.rotated': 'jwt_key',
  'jwt_key.retired': 'jwt_key',

  'organization.created': 'organization',
  'organization.updated': 'organization',
  'organization.deleted': 'organization',
  'member.added': 'user',
  'member.removed': 'user',
  'member.role_changed': 'user',
  'invitation.created': 'organization',
  'invitation.canceled': 'organization',
  'invitation.rejected': 'organization',
} as const satisfies Readonly<Record<string, Target>>

export type Action = keyof typeof ACTIONS
