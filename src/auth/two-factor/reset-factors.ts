import { actWithoutProof } from '#identity/act.ts'
import { deletePasskeys } from '#identity/passkeys.ts'
import { deleteFactor } from '#identity/second-factor.ts'
import { deleteUserSessions } from '#identity/sessions.ts'
import { tell, untold } from '#identity/tell.ts'
import { deleteTickets } from '#identity/tickets.ts'
import { deleteTrustedDevices } from '#identity/trusted-devices.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { noticeTo } from '../mailing/allowance.ts'
import { MAILS } from '../mailing/texts.ts'
import { removeFactorInForce } from './enrolment.ts'

/**
 * For an operator, without a proof: the user has lost what they sign in with. Removes the second factor with its backup codes, passkeys and
 * trusted devices, and ends every session and every link, which may be those of a finder. False when there is nothing to remove.
 */
export async function resetFactors(kernel: Kernel, userId: string): Promise<boolean> {
  const done = await actWithoutProof(kernel, userId, async (kernel, user) => {
    const hadFactor = await removeFactorInForce(kernel, user)
    const passkeys = await deletePasskeys(kernel.db, userId)
    if (!hadFactor && passkeys === 0) {
      untold(kernel, 'there was nothing to remove')
      return false
    }
    await deleteFactor(kernel.db, userId, false)
    await deleteTrustedDevices(kernel.db, userId)
    await deleteTickets(kernel.db, user)
    const sessionsEnded = await deleteUserSessions(kernel.db, userId)
    const details = { secondFactor: hadFactor, passkeys, sessionsEnded }
    await tell(kernel, 'factors.reset', { targetId: userId, details })
    await noticeTo(kernel, user, MAILS.factorChanged(user, 'reset'))
    return true
  })
  return done ?? false
}
