import { type Ban, liftBan } from '#identity/bans.ts'
import { lockProvenUser } from '#identity/proof.ts'
import type { User } from '#identity/users.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { ban } from './bans.ts'
import { giveRole } from './roles.ts'

/** The verbs of the command line: without a caller, and with the same rules. False when there is no such user. */
export const banByOperator = (kernel: Kernel, userId: string, given: Ban): Promise<boolean> =>
  actAsOperator(kernel, userId, (kernel, user) => ban(kernel, user, given))

export const unbanByOperator = (kernel: Kernel, userId: string): Promise<boolean> =>
  actAsOperator(kernel, userId, liftBan)

export const setRoleByOperator = (kernel: Kernel, userId: string, role: string): Promise<boolean> =>
  actAsOperator(kernel, userId, (kernel, user) => giveRole(kernel, user, role))

async function actAsOperator(
  kernel: Kernel,
  userId: string,
  work: (kernel: Kernel, user: User) => Promise<unknown>,
): Promise<boolean> {
  return atomically(kernel, async (kernel) => {
    const user = await lockProvenUser(kernel, { userId })
    if (user !== undefined) await work(kernel, user)
    return user !== undefined
  })
}
