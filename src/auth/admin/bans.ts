import { applyBan, type Ban, liftBan } from '#identity/bans.ts'
import { isLastAdmin } from '#identity/roles.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { actOnUser } from './act-on-user.ts'
import { TO } from './permissions.ts'

/** Ends every session of the user, and every impersonation by and of the user. `seconds`: until the ban lifts itself. */
export function banAsAdmin(
  kernel: Kernel,
  caller: Caller,
  userId: string,
  { reason, seconds }: { readonly reason: string | undefined; readonly seconds: number | undefined },
): Promise<User> {
  return actOnUser(kernel, caller, { permission: TO.BAN, userId }, (kernel, { admin, user }) => {
    if (admin.id === user.id) throw fail('YOU_CANNOT_BAN_YOURSELF')
    const expires = seconds === undefined ? null : new Date(kernel.now().getTime() + seconds * 1_000)
    return ban(kernel, user, { reason: reason ?? null, expires })
  })
}

/** For a user whose row is locked. The last admin cannot be banned. */
export async function ban(kernel: Kernel, user: User, given: Ban): Promise<User> {
  if (await isLastAdmin(kernel, user)) throw fail('LAST_ADMIN')
  return applyBan(kernel, user, given)
}

export const unbanAsAdmin = (kernel: Kernel, caller: Caller, userId: string): Promise<User> =>
  actOnUser(kernel, caller, { permission: TO.BAN, userId }, (kernel, { user }) => liftBan(kernel, user))
