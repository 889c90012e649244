import { act } from '#identity/act.ts'
import {
  completeRefresh,
  findProviderTokens,
  type LinkedAccount,
  listLinkedAccounts,
} from '#identity/provider-tokens.ts'
import { untold } from '#identity/tell.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { bySession, type Caller, expectAlive } from '../door/access.ts'
import { fail } from '../errors.ts'
import { type AccountName, accountOf } from './account.ts'
import type { TokenRefreshes } from './token-refreshes.ts'

/**
 * The tokens of a linked account, refreshed first when the access token ends in less than 5 s. An access token without a refresh token
 * is given out as it is.
 */
export async function getAccessToken(
  kernel: Kernel,
  refreshes: TokenRefreshes,
  caller: Caller,
  name: AccountName,
): Promise<LinkedAccount> {
  const account = await findOwn(kernel, caller, name)
  return isDue(kernel, account) ? refresh(kernel, refreshes, caller, account) : account
}

/** New tokens of a linked account. Concurrent callers get the same ones. */
export async function refreshTokens(
  kernel: Kernel,
  refreshes: TokenRefreshes,
  caller: Caller,
  name: AccountName,
): Promise<LinkedAccount> {
  return refresh(kernel, refreshes, caller, await findOwn(kernel, caller, name))
}

/** The session is looked up after the account: what is given out was the user's while the session was alive. */
async function findOwn(kernel: Kernel, caller: Caller, name: AccountName): Promise<LinkedAccount> {
  const accounts = await listLinkedAccounts(kernel, caller.user.id)
  await expectAlive(kernel, caller)
  return accountOf(accounts, name)
}

const isDue = ({ now }: Kernel, { refreshToken, accessTokenExpiresAt: end }: LinkedAccount): boolean =>
  refreshToken !== null && end !== null && end.getTime() - now().getTime() < MIN_LEFT

/** Milliseconds. */
const MIN_LEFT = 5_000

/**
 * The provider is asked before the transaction. Each caller states its own proof again in a transaction, and the first one stores the
 * tokens. Nothing is stored or given out when the session has ended or the account was unlinked in the meantime.
 */
function refresh(
  kernel: Kernel,
  refreshes: TokenRefreshes,
  caller: Caller,
  account: LinkedAccount,
): Promise<LinkedAccount> {
  if (account.refreshToken === null) throw fail('REFRESH_TOKEN_NOT_FOUND')
  return refreshes.run(account, (tokens) =>
    act(kernel, bySession(caller), async (kernel, { user }) => {
      if (tokens !== undefined) await completeRefresh(kernel, account, tokens)
      untold(kernel, 'the account has new tokens')
      const stored = await findProviderTokens(kernel, user.id, account.id)
      if (stored === undefined) throw fail('ACCOUNT_NOT_FOUND')
      return stored
    }),
  )
}
