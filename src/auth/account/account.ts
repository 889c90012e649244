import { deleteAccount, listAccounts } from '#identity/accounts.ts'
import { act } from '#identity/act.ts'
import { tell } from '#identity/tell.ts'
import { deleteTicketsFor } from '#identity/tickets.ts'
import { isLastWayIn } from '#identity/ways-in.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { bySession, type Caller } from '../door/access.ts'
import { expectShown } from '../door/demands.ts'
import { fail } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import { MAILS } from '../mailing/texts.ts'

/** Names an account by its provider, and by the row's id or the provider's id for it. One of the two suffices. */
export type AccountName = { readonly providerId?: string; readonly accountId?: string }

/** The newest of the accounts that has the name. */
export function accountOf<
  T extends { readonly id: string; readonly providerId: string; readonly accountId: string },
>(accounts: readonly T[], { providerId, accountId }: AccountName): T {
  const found = accounts.findLast(
    (account) =>
      (providerId === undefined || account.providerId === providerId) &&
      (accountId === undefined || account.id === accountId || account.accountId === accountId),
  )
  if (found === undefined || (providerId === undefined && accountId === undefined))
    throw fail('ACCOUNT_NOT_FOUND')
  return found
}

export async function unlinkAccount(kernel: Kernel, caller: Caller, name: AccountName): Promise<void> {
  await act(kernel, bySession(caller), async (kernel, { user }) => {
    const found = accountOf(await listAccounts(kernel.db, user.id), name)
    const verb = found.providerId === 'credential' ? 'unlinkPassword' : 'unlinkAccount'
    await expectShown(kernel, caller.session, verb)
    if (await isLastWayIn(kernel, user, found.id)) throw fail('FAILED_TO_UNLINK_LAST_ACCOUNT')
    await deleteAccount(kernel.db, user.id, found.id)
    // A sign-in with this account may wait for its second factor.
    await deleteTicketsFor(kernel.db, user.id, ['second-factor'])
    const details = { accountId: found.id, provider: found.providerId }
    await tell(kernel, 'account.unlinked', { targetId: user.id, details })
    await noticeTo(kernel, user, MAILS.accountUnlinked(user, found.providerId))
  })
}
