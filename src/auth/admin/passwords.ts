import { requirePasswordChange } from '#identity/accounts.ts'
import { hashPassword } from '#identity/passwords.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Caller } from '../door/access.ts'
import { assignPassword } from '../password/password.ts'
import { acceptablePassword } from '../password/password-policy.ts'
import { actOnUser, expectMayHandOver, expectShownByOneself } from './act-on-user.ts'
import { TO } from './permissions.ts'

type AssignPassword = {
  readonly userId: string
  readonly newPassword: string
  /** The password signs no one in: the next sign-in with it mails a link to choose another. */
  readonly mustChange?: boolean
}

/** Ends every session and every link of the user. */
export async function setUserPassword(
  kernel: Kernel,
  caller: Caller,
  { userId, newPassword, mustChange = false }: AssignPassword,
): Promise<void> {
  const password = await hashPassword(kernel, await acceptablePassword(kernel, newPassword))
  await actOnUser(kernel, caller, { permission: TO.SET_PASSWORD, userId }, async (kernel, act) => {
    expectMayHandOver(kernel, act)
    const shown = await expectShownByOneself(kernel, caller, act, 'assignOwnPassword')
    // An admin whose own password came by mail has proven no more than the mailbox with it, and so it is with the next one.
    const origin = shown?.passwordFromMail === true ? 'mail' : 'other'
    await assignPassword(kernel, act.user, password, origin)
    if (mustChange) await requirePasswordChange(kernel.db, userId, kernel.now())
  })
}
