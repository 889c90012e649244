import type { AdminPermissions } from '#identity/permissions.ts'
import type { AUTH_FAILURES } from '../errors.ts'

/** A permission that a route or a verb asks for, and the failure without it. */
export type AdminPermission = {
  readonly permissions: AdminPermissions
  readonly refusal: keyof typeof AUTH_FAILURES
}

/** For the route, which refuses before the body, and for the verb, which asks again about the locked row. The failures' names are better-auth's. */
export const TO = {
  CREATE: { permissions: { user: ['create'] }, refusal: 'YOU_ARE_NOT_ALLOWED_TO_CREATE_USERS' },
  LIST: { permissions: { user: ['list'] }, refusal: 'YOU_ARE_NOT_ALLOWED_TO_LIST_USERS' },
  GET: { permissions: { user: ['get'] }, refusal: 'YOU_ARE_NOT_ALLOWED_TO_GET_USER' },
  UPDATE: { permissions: { user: ['update'] }, refusal: 'YOU_ARE_NOT_ALLOWED_TO_UPDATE_USERS' },
  SET_EMAIL: { permissions: { user: ['set-email'] }, refusal: 'YOU_ARE_NOT_ALLOWED_TO_SET_USERS_EMAIL' },
  SET_ROLE: { permissions: { user: ['set-role'] }, refusal: 'YOU_ARE_NOT_ALLOWED_TO_CHANGE_USERS_ROLE' },
  SET_PASSWORD: {
    permissions: { user: ['set-password'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_SET_USERS_PASSWORD',
  },
  BAN: { permissions: { user: ['ban'] }, refusal: 'YOU_ARE_NOT_ALLOWED_TO_BAN_USERS' },
  DELETE: { permissions: { user: ['delete'] }, refusal: 'YOU_ARE_NOT_ALLOWED_TO_DELETE_USERS' },
  IMPERSONATE: {
    permissions: { user: ['impersonate'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS',
  },
  LIST_SESSIONS: {
    permissions: { session: ['list'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_LIST_USERS_SESSIONS',
  },
  REVOKE_SESSIONS: {
    permissions: { session: ['revoke'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_REVOKE_USERS_SESSIONS',
  },
  LIST_ORGANIZATIONS: {
    permissions: { organization: ['list'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_LIST_ORGANIZATIONS',
  },
  // Members and invitations are names and addresses of people.
  LIST_MEMBERS: {
    permissions: { organization: ['list'], user: ['list'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_LIST_ORGANIZATIONS',
  },
  UPDATE_ORGANIZATION: {
    permissions: { organization: ['update'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_MANAGE_ORGANIZATIONS',
  },
  DELETE_ORGANIZATION: {
    permissions: { organization: ['delete'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_MANAGE_ORGANIZATIONS',
  },
  MANAGE_MEMBERS: {
    permissions: { organization: ['manage-members'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_MANAGE_ORGANIZATIONS',
  },
  LIST_AUDIT: { permissions: { audit: ['list'] }, refusal: 'YOU_ARE_NOT_ALLOWED_TO_LIST_AUDIT_EVENTS' },
} as const satisfies Readonly<Record<string, AdminPermission>>

/** All refusals of acts on users. */
export const ADMIN_REFUSALS: ReadonlySet<string> = new Set([
  ...Object.values(TO).map(({ refusal }) => refusal),
  'YOU_CANNOT_IMPERSONATE_ADMINS',
])
