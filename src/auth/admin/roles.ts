import { coversPermissions, isAdmin, roleFrom } from '#identity/permissions.ts'
import { changeRole, isLastAdmin } from '#identity/roles.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { actOnUser } from './act-on-user.ts'
import { TO } from './permissions.ts'

export function setUserRole(
  kernel: Kernel,
  caller: Caller,
  userId: string,
  asked: string | readonly string[],
): Promise<User> {
  const role = acceptableRole(kernel, asked)
  return actOnUser(kernel, caller, { permission: TO.SET_ROLE, userId }, (kernel, { admin, user }) => {
    expectToCover(kernel, admin, { id: user.id, role })
    return giveRole(kernel, user, role)
  })
}

/** For a user whose row is locked. The last admin stays one. */
export async function giveRole(kernel: Kernel, user: User, role: string): Promise<User> {
  if (user.isAnonymous && role !== user.role) throw fail('USER_IS_ANONYMOUS')
  if (!isAdmin(kernel, { ...user, role }) && (await isLastAdmin(kernel, user))) throw fail('LAST_ADMIN')
  return changeRole(kernel, user, role)
}

/** One role or several, as they are stored. */
export function acceptableRole(kernel: Kernel, asked: string | readonly string[]): string {
  const role = roleFrom(kernel, typeof asked === 'string' ? [asked] : asked)
  if (role === undefined) throw fail('YOU_ARE_NOT_ALLOWED_TO_SET_NON_EXISTENT_VALUE')
  return role
}

/** Nobody gives a role with more permissions than their own. */
export function expectToCover(kernel: Kernel, admin: User, given: Pick<User, 'id' | 'role'>): void {
  if (!coversPermissions(kernel, admin, given)) throw fail('YOU_ARE_NOT_ALLOWED_TO_CHANGE_USERS_ROLE')
}
