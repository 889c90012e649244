import { type Authority, act } from '#identity/act.ts'
import { coversPermissions, isPermitted } from '#identity/permissions.ts'
import { countsAsAdmin } from '#identity/roles.ts'
import { getStanding, type Standing } from '#identity/standing.ts'
import { findUser, type User, withoutExpiredBan } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { bySession, type Caller } from '../door/access.ts'
import { type DemandingVerb, expectShown } from '../door/demands.ts'
import { fail } from '../errors.ts'
import { isRestricted } from '../two-factor/restricted.ts'
import type { AdminPermission } from './permissions.ts'

/** The two users of an act, as of its transaction. */
export type Act = { readonly admin: User; readonly user: User }

/**
 * Runs the work in a transaction in which the caller's session is alive, the caller has the permission and every permission of the
 * user, and no other transaction changes either of them. When it resolves, no process uses what it has ended.
 */
export async function actOnUser<T>(
  kernel: Kernel,
  caller: Caller,
  { permission, userId: given }: { readonly permission: AdminPermission; readonly userId: string },
  work: (kernel: Kernel, act: Act) => Promise<T>,
): Promise<T> {
  if (!UUID.test(given)) throw fail('USER_NOT_FOUND')
  // As the database writes it.
  const userId = given.toLowerCase()
  const by = { ...byAdmin(caller, permission), others: [userId] }
  return act(kernel, by, (kernel, { user: admin, others }) =>
    work(kernel, { admin, user: withinReach(kernel, admin, permission, others.get(userId)) }),
  )
}

/** The authority of a session whose user has the permission, and that has shown the factor which a role of the user requires. */
export const byAdmin = (caller: Caller, permission: AdminPermission): Authority => ({
  ...bySession(caller),
  async may(kernel, admin) {
    if (await isRestricted(kernel, admin, caller.session)) throw fail('TWO_FACTOR_REQUIRED')
    expectPermission(kernel, admin, permission)
  },
})

/** The user, for an answer that changes nothing. */
export async function readUser(kernel: Kernel, userId: string): Promise<User> {
  const user = UUID.test(userId) ? await findUser(kernel.db, 'id', userId) : undefined
  if (user === undefined) throw fail('USER_NOT_FOUND')
  return withoutExpiredBan(user, kernel.now())
}

export function expectPermission(kernel: Kernel, user: User, permission: AdminPermission): void {
  if (!isPermitted(kernel, user, permission.permissions)) throw fail(permission.refusal)
}

/**
 * Refuses what hands the account to another person: an address, a password. On an admin it would be that admin's role, so it is refused
 * as an impersonation is; on oneself it is not.
 */
export function expectMayHandOver(kernel: Kernel, { admin, user }: Act): void {
  if (admin.id === user.id || kernel.config.auth.admin.allow_impersonating_admins) return
  if (countsAsAdmin(kernel, user)) throw fail('YOU_CANNOT_IMPERSONATE_ADMINS')
}

/**
 * On oneself a verb of admins demands what the verb of users does (auth.md 2): with a session alone nobody takes the account over. Returns
 * what the session has shown; undefined for another user.
 */
export async function expectShownByOneself(
  kernel: Kernel,
  { session }: Caller,
  { admin, user }: Act,
  verb: DemandingVerb,
): Promise<Standing | undefined> {
  if (admin.id !== user.id) return undefined
  await expectShown(kernel, session, verb)
  return getStanding(kernel.db, session.id)
}

/** The user, unless the admin lacks one of the user's permissions. */
function withinReach(kernel: Kernel, admin: User, permission: AdminPermission, user: User | undefined): User {
  if (user === undefined) throw fail('USER_NOT_FOUND')
  if (!coversPermissions(kernel, admin, user)) throw fail(permission.refusal)
  return user
}
