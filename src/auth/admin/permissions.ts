import type { AdminPermissions } from '#identity/permissions.ts'
import type { ADMIN_ACTIONS } from '#kernel/config/sections/auth-admin.ts'
import type { AUTH_FAILURES } from '../errors.ts'

type Actions = typeof ADMIN_ACTIONS
/** `user:ban`, as one word. */
export type Permission = {
  [Resource in keyof Actions]: `${Resource}:${Actions[Resource][number]}`
}[keyof Actions]

/** For the route, which refuses before the body, and for the verb, which asks again about the locked row. */
export const TO = {
  CREATE: { user: ['create'] },
  LIST: { user: ['list'] },
  GET: { user: ['get'] },
  UPDATE: { user: ['update'] },
  SET_EMAIL: { user: ['set-email'] },
  SET_ROLE: { user: ['set-role'] },
  SET_PASSWORD: { user: ['set-password'] },
  BAN: { user: ['ban'] },
  DELETE: { user: ['delete'] },
  IMPERSONATE: { user: ['impersonate'] },
  LIST_SESSIONS: { session: ['list'] },
  REVOKE_SESSIONS: { session: ['revoke'] },
} as const satisfies Readonly<Record<string, AdminPermissions>>

/** The failure of a caller who lacks a permission; the names are better-auth's. */
const REFUSALS = {
  'user:create': 'YOU_ARE_NOT_ALLOWED_TO_CREATE_USERS',
  'user:list': 'YOU_ARE_NOT_ALLOWED_TO_LIST_USERS',
  'user:get': 'YOU_ARE_NOT_ALLOWED_TO_GET_USER',
  'user:set-role': 'YOU_ARE_NOT_ALLOWED_TO_CHANGE_USERS_ROLE',
  'user:ban': 'YOU_ARE_NOT_ALLOWED_TO_BAN_USERS',
  'user:impersonate': 'YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS',
  'user:delete': 'YOU_ARE_NOT_ALLOWED_TO_DELETE_USERS',
  'user:set-password': 'YOU_ARE_NOT_ALLOWED_TO_SET_USERS_PASSWORD',
  'user:set-email': 'YOU_ARE_NOT_ALLOWED_TO_SET_USERS_EMAIL',
  'user:update': 'YOU_ARE_NOT_ALLOWED_TO_UPDATE_USERS',
  'session:list': 'YOU_ARE_NOT_ALLOWED_TO_LIST_USERS_SESSIONS',
  'session:revoke': 'YOU_ARE_NOT_ALLOWED_TO_REVOKE_USERS_SESSIONS',
  'session:delete': 'YOU_ARE_NOT_ALLOWED_TO_REVOKE_USERS_SESSIONS',
  'audit:list': 'YOU_ARE_NOT_ALLOWED_TO_LIST_AUDIT_EVENTS',
} as const satisfies Readonly<Record<Permission, keyof typeof AUTH_FAILURES>>

/** All refusals of acts on users. */
export const ADMIN_REFUSALS: ReadonlySet<string> = new Set([
  ...Object.values(REFUSALS),
  'YOU_CANNOT_IMPERSONATE_ADMINS',
])

/** For the first permission that is asked for. */
export function refusalOf(asked: AdminPermissions): (typeof REFUSALS)[Permission] {
  const [[resource, actions] = []] = Object.entries(asked)
  // The type of `asked` admits only these.
  const code = REFUSALS[`${resource}:${actions?.[0]}` as Permission]
  if (code === undefined) throw new Error('no permission is asked for')
  return code
}

/** `user: set-role`, for the access table. */
export const nameOfPermission = (asked: AdminPermissions): string =>
  Object.entries(asked)
    .map(([resource, actions]) => `${resource}: ${actions.join(', ')}`)
    .join('; ')
