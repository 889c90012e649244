import { ADMIN_ACTIONS } from '#kernel/config/sections/auth-admin.ts'

type Actions = typeof ADMIN_ACTIONS
/** `user:ban`, as one word. */
type Permission = {
  [Resource in keyof Actions]: `${Resource}:${Actions[Resource][number]}`
}[keyof Actions]

/** What an account can do by itself, for who holds its password or its mailbox. */
const AS_THE_USER = ['user:get', 'user:update', 'session:list', 'session:revoke', 'name and image'] as const

export type Effect = Permission | 'name and image'

/**
 * The weaker permissions that each permission contains (auth.md 10). An act on a user answers with its record. A new action without an
 * entry does not compile.
 */
export const IMPLIED: Readonly<Record<Permission, readonly Effect[]>> = {
  'user:create': [],
  'user:list': ['user:get'],
  'user:get': [],
  'user:set-role': ['user:get'],
  'user:ban': ['user:get', 'session:revoke'],
  // An impersonated session reads as the user does.
  'user:impersonate': ['user:get', 'session:list', 'name and image'],
  'user:delete': ['user:ban'],
  'user:set-password': AS_THE_USER,
  'user:set-email': ['user:set-password', ...AS_THE_USER],
  'user:update': ['user:get', 'name and image'],
  'session:list': [],
  'session:revoke': ['session:delete'],
  'session:delete': ['session:revoke'],
  'organization:list': [],
  'organization:update': [],
  'organization:delete': [],
  'organization:manage-members': [],
  'audit:list': [],
}

/** Permissions that open nothing alone: the routes ask for these too. */
export const TOGETHER_WITH: Readonly<Partial<Record<Permission, Permission>>> = {
  'user:set-email': 'user:update',
}

export const PERMISSIONS = Object.keys(IMPLIED) as Permission[] // the keys of a record of permissions

/** The permissions with all that they contain. */
export function withImplied(held: readonly Permission[]): ReadonlySet<Effect> {
  const all = new Set<Effect>(held)
  for (const one of all) for (const implied of one === 'name and image' ? [] : IMPLIED[one]) all.add(implied)
  return all
}

/** Roles of `auth.admin.roles`, one for each permission; the role's name is the permission with a dash. */
export const ROLES = Object.fromEntries(
  PERMISSIONS.map((held) => [roleOf(held), rightsOf([held, TOGETHER_WITH[held] ?? held])]),
)

export function roleOf(held: Permission): string {
  return held.replace(':', '-')
}

function rightsOf(held: readonly Permission[]): Record<string, string[]> {
  const resources = Object.keys(ADMIN_ACTIONS)
  return Object.fromEntries(
    resources.map((resource) => [
      resource,
      held.filter((one) => one.startsWith(`${resource}:`)).map((one) => one.slice(resource.length + 1)),
    ]),
  )
}
